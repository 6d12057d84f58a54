package fit

import (
	"context"
	"fmt"

	"peermesh/ops"
)

// maxFailure bounds what other ranks are told of an error, in bytes.
const maxFailure = 1 << 10

// A report is what a rank has found in its part of a validation, or why it has not.
type report struct {
	Found   map[string]tally
	Failure string
}

// Validate has the model as it is evaluate all of Valid: each rank its part, averaged by
// samples. Every rank of the group calls it; all get the same bits. If it fails on one, all
// get an error that says so.
func (t *Trainer[B]) Validate(ctx context.Context, g *ops.Group) (Metrics, error) {
	if t.Valid == nil || t.Evaluate == nil {
		return nil, fmt.Errorf("fit: Validate without Valid and Evaluate")
	}
	own, failed := tallies(ctx, g, limit(t.Valid, t.LimitValid, false), t.Evaluate)
	return pool(ctx, g, own, failed)
}

// pool averages what all ranks have found. A rank that has failed tells the others.
func pool(ctx context.Context, g *ops.Group, own map[string]tally, failed error) (Metrics, error) {
	said := report{Found: own}
	if failed != nil {
		said.Failure = failed.Error()
		said.Failure = said.Failure[:min(len(said.Failure), maxFailure)]
	}
	all, err := ops.AllGatherObject(ctx, g, said)
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		return nil, fmt.Errorf("fit: gathering the metrics: %w", err)
	}
	found := make([]map[string]tally, len(all))
	for rank, r := range all {
		if r.Failure != "" {
			return nil, fmt.Errorf("fit: validation on rank %d: %s", rank, r.Failure)
		}
		found[rank] = r.Found
	}
	return mean(found), nil
}

// validate is a validation of the run.
func (l *loop[B]) validate(ctx context.Context, g *ops.Group) error {
	r := l.run
	if err := r.hooks(func(c Callback) error { return c.ValidationStart(ctx, r) }); err != nil {
		return err
	}
	found, err := l.evaluate(ctx, g, l.t.Valid)
	if err != nil {
		return err
	}
	for name, value := range found {
		r.metrics[validPrefix+name] = value
		r.Log(validPrefix+name, value)
	}
	l.validated = r.state.Step
	if l.watched != nil {
		value, err := lookUp(r, l.t.Monitor)
		if err != nil {
			return fmt.Errorf("fit: plateau: %w", err)
		}
		l.watched[0], l.watched[1] = value, 1
	}
	return r.hooks(func(c Callback) error { return c.ValidationEnd(ctx, r) })
}

// evaluate evaluates data on all ranks. An error of one ends their world.
func (l *loop[B]) evaluate(ctx context.Context, g *ops.Group, data Data[B]) (Metrics, error) {
	defer lap(&l.run.times[PhaseValidation])()
	own, err := tallies(ctx, g, data, l.t.Evaluate)
	if err != nil {
		return nil, err
	}
	return pool(ctx, g, own, nil)
}

// A tally is a metric on its way to a mean over samples.
type tally struct {
	Sum     float64
	Samples int64
}

// tallies is what this rank finds in its part of the data.
func tallies[B any](ctx context.Context, g *ops.Group, data Data[B], f func(context.Context, B) (Metrics, error)) (map[string]tally, error) {
	own := make(map[string]tally)
	for b, err := range data.Batches(ctx, Place{Rank: g.Rank(), Size: g.Size()}) {
		if err == nil {
			err = b.check()
		}
		if err != nil {
			return nil, fmt.Errorf("fit: validation data: %w", err)
		}
		if b.Samples == 0 {
			continue
		}
		found, err := f(ctx, b.Items)
		if err != nil {
			return nil, fmt.Errorf("fit: evaluating: %w", err)
		}
		for name, value := range found {
			t := own[name]
			own[name] = tally{t.Sum + value*float64(b.Samples), t.Samples + int64(b.Samples)}
		}
	}
	return own, nil
}

// mean adds what ranks have found, in their order, so that all get the same bits. A rank
// without samples has no names either.
func mean(ranks []map[string]tally) Metrics {
	total := make(map[string]tally)
	for _, own := range ranks {
		for name, t := range own {
			sum := total[name]
			total[name] = tally{sum.Sum + t.Sum, sum.Samples + t.Samples}
		}
	}
	found := make(Metrics, len(total))
	for name, t := range total {
		found[name] = t.Sum / float64(t.Samples)
	}
	return found
}
