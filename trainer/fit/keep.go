package fit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"peermesh/ops"
	"peermesh/trainer"
)

// keep saves to Trainer.Checkpoints, if there are any.
func (l *loop[B]) keep(ctx context.Context, g *ops.Group) error {
	if l.t.Checkpoints == nil {
		return nil
	}
	return l.save(ctx, g, l.t.Checkpoints)
}

// save keeps the state in the order of a run without ZeRO, so that one can go on from
// it. Between two steps it has the live numbers of the callbacks, which have seen the
// step. At an epoch's end it has those from before that: whoever resumes from there
// ends the epoch once more, with its validation.
func (l *loop[B]) save(ctx context.Context, g *ops.Group, c *trainer.Checkpoints) error {
	done := lap(&l.run.times[PhaseCheckpoint])
	full, err := l.engine.state()
	if err == nil {
		s := l.whole(full)
		if !l.between {
			for i, m := range l.memories {
				at := len(s.Tensors) - len(l.memories) + i
				s.Tensors[at] = param(m.state.Name, m.live)
			}
		}
		err = c.Save(ctx, g, s)
	}
	done()
	if err != nil {
		return fmt.Errorf("fit: saving a checkpoint: %w", err)
	}
	return l.run.hooks(func(cb Callback) error { return cb.CheckpointSave(ctx, l.run, c) })
}

// resume loads the newest checkpoint at the beginning of a run, if there is one.
func (l *loop[B]) resume(ctx context.Context, g *ops.Group) (found bool, err error) {
	s := l.elastic.State
	if !l.t.Resume || s.Step > 0 || s.Epoch > 0 {
		return false, nil
	}
	done := lap(&l.run.times[PhaseCheckpoint])
	err = l.load(ctx, g)
	done()
	if errors.Is(err, trainer.ErrNoCheckpoint) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("fit: resuming: %w", err)
	}
	return true, l.run.hooks(func(c Callback) error { return c.CheckpointLoad(ctx, l.run, l.t.Checkpoints) })
}

func (l *loop[B]) load(ctx context.Context, g *ops.Group) error {
	full, err := l.engine.state()
	if err != nil {
		return err
	}
	whole := l.whole(full)
	if err := l.t.Checkpoints.Load(ctx, g, whole); err != nil {
		return err
	}
	l.elastic.State.Progress = whole.Progress
	return l.engine.load(full)
}

// whole is the state with the optimiser's as full has it.
func (l *loop[B]) whole(full []*trainer.Param) *trainer.State {
	s, model := l.elastic.State, l.run.params
	if l.apart != nil {
		model = l.apart.model()
	}
	return &trainer.State{
		Progress: s.Progress,
		Tensors:  slices.Concat(model, full, l.extras()),
		Buffers:  s.Buffers,
		Random:   s.Random,
	}
}

// extras is what the loop itself adds to a state, callbacks' memories last.
func (l *loop[B]) extras() []*trainer.Param {
	all := []*trainer.Param{param("fit.epoch", l.epoch)}
	if l.schedule != nil {
		all = append(all, l.schedule.State()...)
	}
	if l.plateau != nil {
		all = append(all, l.plateau.State()...)
	}
	if l.scaler != nil {
		all = append(all, l.scaler.State()...)
	}
	for _, m := range l.memories {
		all = append(all, m.state)
	}
	return all
}
