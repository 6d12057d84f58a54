package fit

import (
	"context"
	"errors"
	"fmt"

	"peermesh/trainer"
)

// A Callback is called at the places of a run that its methods are named after. Embed
// [Base] or [RankZero] and write those that are needed.
//
// An error, or a panic, ends the run on all ranks. The methods belong to the goroutine
// that trains. Those of a callback on every rank may use [Run.Group], all of them alike;
// those on rank 0 alone may not. None may change the model, but for what BackwardEnd and
// UpdateStart do to gradients on all ranks alike.
//
// Where a world ends and another follows, a step that was under way is taken again, and
// so are the end of an epoch, the end of the run and a validation between two steps, with
// their hooks. Ranks that are new there hear FitStart and EpochStart alone: what all ranks
// do together in a world's beginning belongs into WorldStart.
type Callback interface {
	// Ranks says where the callback is called.
	Ranks() Ranks

	// FitStart comes once, before the first step, with the checkpoint loaded and the
	// sanity check passed. FitEnd comes once, if the run ends well, with no group any more:
	// its error is this rank's alone.
	FitStart(ctx context.Context, r *Run) error
	FitEnd(ctx context.Context, r *Run) error
	// WorldStart comes with each world, the first too, after FitStart.
	WorldStart(ctx context.Context, r *Run) error

	// EpochStart comes before an epoch's first step, EpochEnd after its validation.
	EpochStart(ctx context.Context, r *Run) error
	EpochEnd(ctx context.Context, r *Run) error

	// StepStart comes before a step's batches, and StepEnd when it counts, with its loss
	// among the metrics.
	StepStart(ctx context.Context, r *Run) error
	StepEnd(ctx context.Context, r *Run) error
	// BackwardStart and BackwardEnd are around the forward and backward passes of each
	// batch. A rank that has no samples in a batch leaves them out.
	BackwardStart(ctx context.Context, r *Run) error
	BackwardEnd(ctx context.Context, r *Run) error
	// UpdateStart comes before clipping and the optimiser's step. The gradients are those
	// of all ranks.
	UpdateStart(ctx context.Context, r *Run) error

	// ValidationStart and ValidationEnd are around a validation; at the end its metrics
	// are those of the run.
	ValidationStart(ctx context.Context, r *Run) error
	ValidationEnd(ctx context.Context, r *Run) error

	// CheckpointSave comes after all ranks have saved one, CheckpointLoad after all have
	// loaded one.
	CheckpointSave(ctx context.Context, r *Run, c *trainer.Checkpoints) error
	CheckpointLoad(ctx context.Context, r *Run, c *trainer.Checkpoints) error

	// Exception comes to all when the run ends with an error on this rank. What it returns
	// is joined to that.
	Exception(ctx context.Context, r *Run, err error) error
}

// Ranks are those that call a callback.
type Ranks uint8

const (
	// EveryRank is all of them.
	EveryRank Ranks = iota
	// RankZeroOnly is rank 0. When worlds change that may be another process.
	RankZeroOnly
)

// A Stateful callback has numbers that outlive the process: they are saved, loaded and
// carried with the state of the run. It is called on every rank, and computes them alike
// on all. What it learns of a step, of a validation or at an epoch's end counts when the next
// step or epoch does: where a world ends before that, it is forgotten on all ranks, and all
// but StepEnd comes again.
type Stateful interface {
	Callback
	// Memory is a name, unlike those of all other callbacks, and the numbers, always the
	// same slice. The trainer reads and writes it between calls.
	Memory() (name string, numbers []float64)
}

// Base is a Callback on every rank that does nothing.
type Base struct{}

// RankZero is a Callback on rank 0 that does nothing.
type RankZero struct{ Base }

func (Base) Ranks() Ranks                                                     { return EveryRank }
func (Base) FitStart(context.Context, *Run) error                             { return nil }
func (Base) FitEnd(context.Context, *Run) error                               { return nil }
func (Base) WorldStart(context.Context, *Run) error                           { return nil }
func (Base) EpochStart(context.Context, *Run) error                           { return nil }
func (Base) EpochEnd(context.Context, *Run) error                             { return nil }
func (Base) StepStart(context.Context, *Run) error                            { return nil }
func (Base) StepEnd(context.Context, *Run) error                              { return nil }
func (Base) BackwardStart(context.Context, *Run) error                        { return nil }
func (Base) BackwardEnd(context.Context, *Run) error                          { return nil }
func (Base) UpdateStart(context.Context, *Run) error                          { return nil }
func (Base) ValidationStart(context.Context, *Run) error                      { return nil }
func (Base) ValidationEnd(context.Context, *Run) error                        { return nil }
func (Base) CheckpointSave(context.Context, *Run, *trainer.Checkpoints) error { return nil }
func (Base) CheckpointLoad(context.Context, *Run, *trainer.Checkpoints) error { return nil }
func (Base) Exception(context.Context, *Run, error) error                     { return nil }

// Ranks is RankZeroOnly.
func (RankZero) Ranks() Ranks { return RankZeroOnly }

// hears is whether a callback is for this rank.
func (r *Run) hears(c Callback) bool { return c.Ranks() != RankZeroOnly || r.rank == 0 }

// hooks calls one method of all callbacks that are for this rank, in order, up to one that
// fails.
func (r *Run) hooks(call func(c Callback) error) error {
	defer lap(&r.times[PhaseCallbacks])()
	for _, c := range r.callbacks {
		if !r.hears(c) {
			continue
		}
		if err := call(c); err != nil {
			return fmt.Errorf("fit: callback %T: %w", c, err)
		}
	}
	return nil
}

// exception tells all of them of an error, and returns what they have to add to it.
func (r *Run) exception(ctx context.Context, failed error) (more error) {
	for _, c := range r.callbacks {
		if !r.hears(c) {
			continue
		}
		if err := guard(func() error { return c.Exception(ctx, r, failed) }); err != nil {
			more = errors.Join(more, fmt.Errorf("fit: callback %T: %w", c, err))
		}
	}
	return more
}
