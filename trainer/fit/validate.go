package fit

import (
	"context"
	"fmt"

	"peermesh/ops"
)

// Validate has the model as it is evaluate all of Valid: each rank its part, averaged by
// samples. Every rank of the group calls it; all get the same bits.
func (t *Trainer[B]) Validate(ctx context.Context, g *ops.Group) (Metrics, error) {
	if t.Valid == nil || t.Evaluate == nil {
		return nil, fmt.Errorf("fit: Validate without Valid and Evaluate")
	}
	return evaluate(ctx, g, limit(t.Valid, t.LimitValid, false), t.Evaluate)
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

func (l *loop[B]) evaluate(ctx context.Context, g *ops.Group, data Data[B]) (Metrics, error) {
	defer lap(&l.run.times[PhaseValidation])()
	return evaluate(ctx, g, data, l.t.Evaluate)
}

// A tally is a metric on its way to a mean over samples.
type tally struct {
	Sum     float64
	Samples int64
}

func evaluate[B any](ctx context.Context, g *ops.Group, data Data[B], f func(context.Context, B) (Metrics, error)) (Metrics, error) {
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
	all, err := ops.AllGatherObject(ctx, g, own)
	if err != nil {
		return nil, fmt.Errorf("fit: gathering the metrics: %w", err)
	}
	return mean(all), nil
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
