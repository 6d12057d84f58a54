package fit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"peermesh/ops/tensor"
	"peermesh/trainer"
)

// check finds what cannot be run, and fills in the defaults of a copy.
func (t Trainer[B]) check() (Trainer[B], error) {
	fail := func(format string, a ...any) (Trainer[B], error) {
		return t, fmt.Errorf("fit: Trainer: "+format, a...)
	}
	_, canSynchronize := t.Model.(synchronized)
	switch {
	case t.Model == nil || t.Optimizer == nil || t.Train == nil:
		return fail("Model, Optimizer and Train are needed")
	case min(t.Epochs, t.Steps, t.ValidEvery, t.ValidEpochs, t.CheckpointEvery, t.LogEvery) < 0 ||
		min(t.LimitTrain, t.LimitValid, t.Overfit) < 0:
		return fail("a number of epochs, steps or batches is negative")
	case t.Epochs == 0 && t.Steps == 0 && !t.FastRun:
		return fail("one of Epochs and Steps is needed")
	case (t.Valid == nil) != (t.Evaluate == nil):
		return fail("Valid and Evaluate go together")
	case t.Accumulate < 0 || t.Accumulate > MaxAccumulate:
		return fail("%d batches a step: at most %d", t.Accumulate, MaxAccumulate)
	case t.Clip < 0 || t.Clip != t.Clip:
		return fail("Clip is %v", t.Clip)
	case t.DDP.Uneven != trainer.EvenOnly:
		return fail("DDP.Uneven is for loops whose ranks end at different times, which these do not")
	case t.DDP.Update != nil:
		return fail("DDP.Update is for loops of one world, in this one a step is all or nothing")
	case t.ZeRO != nil && t.ZeRO.Hook != nil:
		return fail("the hook of a run is DDP.Hook, with ZeRO too")
	case t.Local != nil && (t.ZeRO != nil || t.Scaler != nil):
		return fail("Local has optimisers and scales that are each rank's own: it goes with no ZeRO or Scaler")
	case t.SyncBatchNorm && !canSynchronize:
		return fail("SyncBatchNorm: %T has no Synchronize(*ops.Group)", t.Model)
	case t.SyncBatchNorm && t.Local != nil:
		return fail("SyncBatchNorm is for ranks that step together, with Local they do not")
	case t.Resume && t.Checkpoints == nil:
		return fail("Resume without Checkpoints")
	case t.Plateau != nil && t.Valid == nil:
		return fail("Plateau without Valid")
	case slices.Contains(t.Callbacks, nil) || slices.Contains(t.Loggers, nil):
		return fail("a nil callback or logger")
	}
	t.ValidEpochs = max(t.ValidEpochs, 1)
	t.Accumulate = max(t.Accumulate, 1)
	t.LogEvery = cmp.Or(t.LogEvery, DefaultLogEvery)
	t.Monitor = monitored(t.Monitor)
	t.Sanity = cmp.Or(t.Sanity, DefaultSanity)
	if t.FastRun {
		t.Epochs, t.Steps, t.ValidEvery, t.ValidEpochs = 1, 0, 0, 1
		t.LimitTrain, t.LimitValid, t.Accumulate, t.Sanity = 1, 1, 1, -1
		t.Checkpoints, t.Resume, t.Loggers = nil, false, nil
	}
	t.Train, t.Valid = limit(t.Train, t.LimitTrain, false), limit(t.Valid, t.LimitValid, false)
	if t.Overfit > 0 {
		t.Train = limit(t.Train, t.Overfit, true)
		if t.Valid != nil {
			t.Valid = t.Train
		}
	}
	return t, nil
}

// newLoop builds all of a run that does not depend on a world.
func newLoop[B any](given *Trainer[B]) (*loop[B], error) {
	t, err := given.check()
	if err != nil {
		return nil, err
	}
	t.DDP.Buffers = t.buffers()
	params := t.Model.Params()
	l := &loop[B]{t: t, epoch: make([]float64, 2), started: -1, validated: -1}
	buffers := t.DDP.Buffers
	if t.Local != nil {
		buffers = nil // which are each rank's own; the state has what apart keeps of them
	}
	if h, ok := t.DDP.Hook.(keepingHook); ok {
		l.hook, buffers = h, slices.Concat(buffers, h.State())
	}
	l.run = &Run{rank: -1, state: &trainer.State{Random: t.Random, Buffers: buffers}, params: params,
		epochs: t.Epochs, steps: t.Steps, perEpoch: t.Train.Len(), fast: t.FastRun,
		callbacks: t.Callbacks, loggers: t.Loggers, logEvery: t.LogEvery, metrics: Metrics{}, pending: Metrics{}}
	l.run.save = func(ctx context.Context, c *trainer.Checkpoints) error { return l.save(ctx, l.run.group, c) }
	l.run.norm, l.run.unsound = l.norm, l.unsound
	l.feed = &feed[B]{data: t.Train, accumulate: t.Accumulate, spent: &l.run.times[PhaseData]}
	if l.memories, err = remembered(t.Callbacks); err != nil {
		return nil, err
	}
	if t.Plateau != nil {
		l.watched = make([]float64, 2)
		l.memories = append(l.memories, newMemory("fit.plateau", l.watched))
	}
	if t.Scaler != nil {
		if l.scaler, err = trainer.NewScaler(*t.Scaler); err != nil {
			return nil, err
		}
	}
	if err := l.newEngine(params); err != nil {
		return nil, err
	}
	l.elastic = trainer.Elastic{State: l.run.state, Sampler: l.feed, Group: t.Group, Epochs: t.Epochs,
		Begin: l.begin, Compute: l.compute, Update: l.update, AfterStep: l.afterStep,
		EpochEnd: l.epochEnd, UpdateEpoch: l.updateEpoch}
	return l, nil
}

// A keepingHook has a state that all ranks have alike, for the run's, and feedback that is
// of no use in another world: those of package compress do.
type keepingHook interface {
	State() []*trainer.Param
	Reset()
}

// newEngine builds the optimiser, or leaves it for the world that will share it.
func (l *loop[B]) newEngine(params []*trainer.Param) error {
	d := l.t.DDP
	d.Synced = true // by Carry, or a checkpoint
	whole := replicated{params: params, config: d}
	build := func(share []*trainer.Param) (trainer.Optimizer, error) {
		o, err := l.t.Optimizer(share)
		if err == nil {
			err = l.schedules(o)
		}
		return o, err
	}
	if z := l.t.ZeRO; z != nil {
		c := *z
		c.Synced = true
		if c.Stage != 1 {
			c.Hook = d.Hook
		}
		if c.Stage == 1 {
			l.engine = &staged{replicated: whole, z: c, build: build}
		} else {
			l.engine = &sharded{params: params, z: c, build: build, buffers: d.Buffers}
		}
		l.run.state.Tensors = params // the rest is not alike on all ranks
		return nil
	}
	var err error
	if whole.opt, err = build(params); err != nil {
		return err
	}
	if l.t.Local != nil {
		if l.apart, err = newApart(l.t.Local, whole); err != nil {
			return err
		}
		l.engine = l.apart
		l.run.state.Tensors = slices.Concat(l.apart.model(), l.extras()) // optimisers are each rank's own
		return nil
	}
	l.engine = &whole
	l.run.state.Tensors = slices.Concat(params, whole.opt.State(), l.extras())
	return nil
}

// schedules has an optimiser's rates move.
func (l *loop[B]) schedules(o trainer.Optimizer) (err error) {
	if o == nil {
		return errors.New("fit: Trainer.Optimizer has built none")
	}
	if l.t.Curve != nil {
		if l.schedule, err = trainer.NewSchedule(o, l.t.Curve); err != nil {
			return err
		}
	}
	if l.t.Plateau != nil {
		l.plateau, err = trainer.NewReduceLROnPlateau(o, *l.t.Plateau)
	}
	return err
}

// norm is that of the gradients without the loss's scale.
func (l *loop[B]) norm(ctx context.Context) (float64, error) {
	norm, err := l.engine.norm(ctx)
	if l.scaler != nil {
		norm /= l.scaler.Scale()
	}
	return norm, err
}

// param is numbers as a part of a state.
func param(name string, x []float64) *trainer.Param {
	return &trainer.Param{Name: name, Value: tensor.Of(x)}
}
