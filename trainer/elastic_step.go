package trainer

import (
	"context"
	"fmt"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// steps takes a world's steps, from a state that all ranks share to the end.
func (e *Elastic) steps(ctx context.Context, w World, g *ops.Group) error {
	if err := Carry(ctx, g, e.State); err != nil {
		return err
	}
	w.Carried()
	e.taken = 0
	if err := e.shareEnd(ctx, g); err != nil {
		return err
	}
	if e.Begin != nil && !e.finished() {
		if err := e.Begin(ctx, g); err != nil {
			return err
		}
	}
	for !e.finished() {
		if err := e.step(ctx, w, g); err != nil {
			return err
		}
	}
	// Who is done stays until all are: the world may end before, and then one that
	// is not needs this rank's state.
	if err := g.Barrier(ctx).Wait(); err != nil {
		return fmt.Errorf("trainer: waiting for all ranks to finish: %w", err)
	}
	return nil
}

// shareEnd has all ranks know of a Finish that some have been told.
func (e *Elastic) shareEnd(ctx context.Context, g *ops.Group) error {
	over := []bool{e.over}
	if err := g.AllReduce(ctx, tensor.Of(over), tensor.Max).Wait(); err != nil {
		return fmt.Errorf("trainer: asking whether the run is over: %w", err)
	}
	e.over = over[0]
	return nil
}

// step takes one step, or ends an epoch. It ends the world when all ranks know
// that somebody waits to be let in.
func (e *Elastic) step(ctx context.Context, w World, g *ops.Group) error {
	share, more := e.Sampler.Deal(e.State.Progress, g.Rank(), g.Size())
	if !more {
		return e.endEpoch(ctx, g)
	}
	// Whether somebody waits is agreed on during the step, when it costs no time.
	newcomers := w.Newcomers()
	waiting := []bool{newcomers != nil}
	e.asked = g.AllReduce(ctx, tensor.Of(waiting), tensor.Max)
	if err := e.attempt(ctx, share); err != nil {
		return err
	}
	if err := e.commit(share); err != nil {
		return own(err)
	}
	if err := e.asked.Wait(); err != nil {
		return fmt.Errorf("trainer: asking for newcomers: %w", err)
	}
	if e.taken++; e.taken == 2 { // all have begun this step, and so ended the one before
		w.Advanced()
	}
	if e.AfterStep != nil {
		if err := e.AfterStep(ctx, g); err != nil {
			return err
		}
	}
	if waiting[0] && !e.finished() {
		return admit(ctx, w, g, newcomers)
	}
	return nil
}

// attempt computes, and leaves the state as it was if that fails.
func (e *Elastic) attempt(ctx context.Context, share Share) error {
	if err := e.State.remember(&e.memento); err != nil {
		return own(err)
	}
	err := ctx.Err()
	if err == nil {
		err = e.Compute(ctx, share)
	}
	if err == nil {
		return nil
	}
	if e := e.State.restore(&e.memento); e != nil {
		return own(fmt.Errorf("%w (after %w)", e, err))
	}
	return err
}

// commit makes a step count.
func (e *Elastic) commit(share Share) error {
	if err := e.Update(); err != nil {
		return err
	}
	e.State.Step++
	e.State.Consumed += int64(share.Total)
	return nil
}

func (e *Elastic) endEpoch(ctx context.Context, g *ops.Group) error {
	if e.EpochEnd != nil {
		if err := e.EpochEnd(ctx, g); err != nil {
			return err
		}
	}
	if e.UpdateEpoch != nil {
		if err := e.UpdateEpoch(); err != nil {
			return own(err)
		}
	}
	e.State.Epoch++
	e.State.Consumed = 0
	return nil
}

// admit ends the world so that the next one has the newcomers in it. By the
// barrier all ranks have finished the step, so nobody loses one. A rank that has
// not seen them itself waits for one that has.
func admit(ctx context.Context, w World, g *ops.Group, newcomers error) error {
	if err := g.Barrier(ctx).Wait(); err != nil {
		return fmt.Errorf("trainer: letting newcomers in: %w", err)
	}
	w.Advanced()
	if newcomers != nil {
		w.End(newcomers)
	}
	<-ctx.Done()
	return context.Cause(ctx)
}
