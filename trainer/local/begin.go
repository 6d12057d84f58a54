package local

import (
	"context"
	"errors"
	"fmt"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/trainer"
)

// A SettingsError says that two ranks have other methods, models or states. Every rank
// gets it.
type SettingsError struct {
	Rank          int    // that differs from rank 0
	Theirs, First string // what it has, and what rank 0 has
}

func (e *SettingsError) Error() string {
	return fmt.Sprintf("local: rank %d has %s, rank 0 %s", e.Rank, e.Theirs, e.First)
}

// A hello is what ranks tell each other when a world begins.
type hello struct {
	Terms string
	Comes bool // from the world before, with a model that is worth something
}

// Begin prepares for a world: every rank calls it, at the same place among the group's
// operations, with States that are alike. ctx bounds it and all steps in this world.
//
// In the first world all ranks get rank 0's model. In a later one, after trainer.Carry, a
// rank that comes from the one before goes on from its own model, whatever it has learnt
// since the last synchronisation; a rank that is new, or that has missed one, from the
// anchor. With pairs, where the anchor may be old, all begin with the mean of those that
// have come along. What was under way is forgotten: the next round has it.
func (r *Replica) Begin(ctx context.Context, g *ops.Group) error {
	for _, c := range r.parts {
		_ = r.drop(c) // its error is that of a world that has ended
	}
	own, err := r.hello()
	if err != nil {
		return err
	}
	all, err := ops.AllGatherObject(ctx, g, own)
	if err != nil {
		return fmt.Errorf("local: comparing settings: %w", err)
	}
	for rank, theirs := range all {
		if theirs.Terms != all[0].Terms {
			// All know; the barrier has nobody end the world before.
			return errors.Join(&SettingsError{rank, theirs.Terms, all[0].Terms}, g.Barrier(ctx).Wait())
		}
	}
	steps := r.counter[0]
	if steps > 0 && steps < r.p.warmup {
		return fmt.Errorf("local: the world begins at step %d of a warm-up of %d: an optimiser that is new has nothing to go on with; start again, without", steps, r.p.warmup)
	}
	r.ctx = ctx
	if r.g, err = g.Split(ctx, g.Ranks()); err != nil {
		return fmt.Errorf("local: a group of its own: %w", err)
	}
	if steps == 0 {
		if err := r.spread(); err != nil {
			return err
		}
	}
	if !own.Comes {
		if err := r.Rewind(); err != nil {
			return err
		}
		for _, c := range r.parts {
			clear(elements[float32](c.owed))
			clear(elements[float64](c.owed))
		}
	}
	if err := r.gather(own, all); err != nil {
		return err
	}
	r.begun, r.at = true, r.counter[2]
	return nil
}

// hello is this rank's. Before the first step ranks may differ: they get rank 0's model.
func (r *Replica) hello() (hello, error) {
	var shapes []*trainer.Param
	for _, p := range r.params {
		shapes = append(shapes, &trainer.Param{Name: fmt.Sprintf("%q %v", p.Name, p.Value), Value: tensor.Of([]byte{})})
	}
	model, err := trainer.Hash(shapes)
	if err != nil {
		return hello{}, fmt.Errorf("local: %w", err)
	}
	h := hello{Terms: fmt.Sprintf("%s for a model of %d parameters (%x)", r.p.name, len(r.params), model[:6])}
	if r.counter[0] == 0 {
		return h, nil
	}
	h.Comes = r.begun && r.at == r.counter[2]
	state, err := trainer.Hash(r.State())
	if err != nil {
		return hello{}, fmt.Errorf("local: %w", err)
	}
	h.Terms += fmt.Sprintf(" at step %d in state %x", r.counter[0], state[:6])
	return h, nil
}

// spread gives all ranks rank 0's model for the anchor.
func (r *Replica) spread() error {
	var works []*ops.Work
	for _, a := range r.anchors {
		works = append(works, r.g.Broadcast(r.ctx, a.Value, r.g.Global(0)))
	}
	var err error
	for _, w := range works {
		err = errors.Join(err, w.Wait())
	}
	if err != nil {
		return fmt.Errorf("local: rank 0's model: %w", err)
	}
	return nil
}

// gather has pairs begin with the mean of the models that come from the world before. The
// anchor stays, as a step has not been.
func (r *Replica) gather(own hello, all []hello) error {
	coming := 0
	for _, h := range all {
		if h.Comes {
			coming++
		}
	}
	if !r.p.pairs || coming == 0 {
		return nil
	}
	if err := r.fetch(); err != nil {
		return err
	}
	weight := 0.0
	if own.Comes {
		weight = 1 / float64(coming)
	}
	for _, c := range r.parts {
		r.launch(c, weight)
	}
	err := r.arrivals(func(*part) bool { return true })
	if err != nil {
		return err
	}
	for _, c := range r.parts {
		c.landed = false
		if c.dtype == tensor.Float32 {
			follow[float32](r, c)
		} else {
			follow[float64](r, c)
		}
	}
	return r.give()
}

// follow moves the model, and not the anchor, by what has come.
func follow[T real](r *Replica, c *part) {
	each(c, func(flight, live, anchor, _ []T) {
		for i, d := range flight {
			live[i] = anchor[i] - d
		}
	}, r.params, r.anchors, nil)
}
