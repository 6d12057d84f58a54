package fit

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"peermesh/ops"
	"peermesh/trainer"
	"peermesh/trainer/internal/parting"
	"peermesh/trainer/local"
)

const (
	// DefaultSanity is how many batches are validated before the first step, as a
	// test of the code.
	DefaultSanity = 2
	// DefaultLogEvery is how many steps there are from one that is logged to the next.
	DefaultLogEvery = 50
	// MaxAccumulate bounds the batches of one step.
	MaxAccumulate = 1 << 12
)

// A Trainer is a training run, as its settings. Model, Optimizer, Train and one of
// Epochs and Steps are needed; every other field may be left zero. All ranks have the
// same settings, with models of their own.
//
// A Trainer is for one run. To go on from where it ended, resume from a checkpoint.
type Trainer[B any] struct {
	Model trainer.Model[B]
	// Optimizer builds the optimiser of some parameters: the model's, or with ZeRO
	// this rank's share of them.
	Optimizer func(params []*trainer.Param) (trainer.Optimizer, error)

	Train  Data[B]
	Epochs int64 // how many; zero: no bound
	Steps  int64 // how many at most; zero: no bound

	// Valid are the data to validate on, and Evaluate is what the model has to say of a
	// batch of them: means over its samples. It must leave the model as it is. Both are
	// given or neither.
	Valid    Data[B]
	Evaluate func(ctx context.Context, batch B) (Metrics, error)
	// ValidEvery is the number of steps from one validation to the next; zero: at the end
	// of every ValidEpochs-th epoch, and at the end of the run.
	ValidEvery  int64
	ValidEpochs int64 // zero: 1
	// Sanity is how many batches each rank validates before the first step, so that a
	// mistake in Evaluate does not wait for the end of an epoch to be found. Zero is
	// DefaultSanity, negative is none.
	Sanity int

	// Accumulate is how many batches make a step; zero: 1. Their gradients are averaged
	// by samples and travel once.
	Accumulate int
	Clip       float64               // the largest norm of all gradients; zero: any
	Scaler     *trainer.ScalerConfig // scales losses on their way through short floats; nil: does not
	Curve      trainer.Curve         // of the learning rates; nil: they stay
	ByEpoch    bool                  // the Curve's steps are epochs rather than steps
	// Plateau lowers the rates when the metric Monitor no longer improves, looked at after
	// each epoch with a validation: the last of the epoch's. Nil: does not.
	Plateau *trainer.PlateauConfig
	Monitor string // zero: "val/loss"

	// DDP is how gradients are averaged. Synced is set, Buffers are the model's if it has
	// them and none are given, Uneven and Update are refused.
	DDP trainer.DDPConfig
	// SyncBatchNorm has the model's batch norms take the statistics of all ranks' batches
	// together, as PyTorch's SyncBatchNorm: the model has Synchronize(*ops.Group), as those
	// of package nn/layers do. On ranks without samples it is given a batch that is B's zero
	// value.
	SyncBatchNorm bool
	// ZeRO shares out the optimiser's memory. Stage 1 is beside DDP, stage 2 in its place.
	ZeRO *trainer.ZeROConfig
	// Local has ranks step on their own and come together as a method of package local
	// says. DDP is then for the steps of its warm-up. Nil: gradients are averaged.
	Local local.Method
	Group ops.Config // of every world's group

	// Checkpoints keeps the state, every CheckpointEvery steps; zero: after each epoch
	// and at the end. With Resume the run begins at the newest, if there is one.
	Checkpoints     *trainer.Checkpoints
	CheckpointEvery int64
	Resume          bool
	Random          trainer.Random // drawn from alike on all ranks; part of the state. May be nil

	Callbacks []Callback
	Loggers   []Logger // of rank 0. They are the caller's to close
	LogEvery  int64    // steps; zero: DefaultLogEvery

	// LimitTrain and LimitValid are how many batches of each rank make an epoch and a
	// validation; zero: all.
	LimitTrain, LimitValid int
	// FastRun takes one step on one batch, validates one, and keeps nothing: a test of
	// all the code in a moment. Callbacks that look for an outcome are told nothing.
	FastRun bool
	// Overfit is a number of batches to learn by heart, as a test of the model: those at
	// the beginning of the first epoch, in each epoch again, to train and to validate.
	Overfit int
}

// Fit trains in one world, to its end. An error on any rank ends all: the one whose
// error it is returns it, and the others return what has ended their world, which says
// it as well. A panic of the model or a callback is such an error, a *[PanicError]. When
// Fit returns an error the others know it, or have had a second to: the process may exit.
//
// Every rank of the world calls it.
func (t *Trainer[B]) Fit(ctx context.Context, w ops.Transport) error {
	return t.Run(ctx, &single{transport: w})
}

// Run trains in one world after the other, as a [trainer.Elastic] does: when ranks die
// those that are left go on, and newcomers are let in. A rank's own error ends the run
// on that rank, and its world on all.
func (t *Trainer[B]) Run(ctx context.Context, worlds trainer.Worlds) (err error) {
	l, err := newLoop(t)
	if err != nil {
		return failed(worlds, err)
	}
	defer l.feed.close()
	defer l.release()
	defer func() {
		if err != nil {
			err = errors.Join(err, l.run.exception(ctx, err))
		}
	}()
	if err := l.elasticRun(ctx, worlds); err != nil {
		return err
	}
	l.run.group = nil
	if l.apart != nil { // others may have given this rank the end of the run
		if err := l.apart.rewind(); err != nil {
			return err
		}
	}
	end := guard(func() error {
		return l.run.hooks(func(c Callback) error { return c.FitEnd(ctx, l.run) })
	})
	return errors.Join(end, l.run.flush())
}

// elasticRun runs as long as there are worlds. Where there was one, its end is the run's.
func (l *loop[B]) elasticRun(ctx context.Context, worlds trainer.Worlds) error {
	one, isOne := worlds.(*single)
	if l.t.ZeRO != nil {
		worlds = &closed{worlds: worlds}
	}
	// By the time that a panic comes here, it is what has ended the world.
	err := guard(func() error { return l.elastic.Run(ctx, worlds) })
	if isOne && errors.Is(err, errOver) {
		return heard(context.Cause(one.transport.Context()))
	}
	if err != nil {
		return failed(worlds, err)
	}
	return nil
}

// heard is an error of what has ended the world. That may be another rank's error as that has
// returned it, where a transport adds nothing.
func heard(cause error) error {
	if strings.HasPrefix(cause.Error(), prefix) {
		return cause
	}
	return fmt.Errorf(prefix+"%w", cause)
}

// prefix is what errors of this package begin with.
const prefix = "fit: "

// failed has the only world of a run end with an error, if that came before a step could.
func failed(worlds trainer.Worlds, err error) error {
	if one, ok := worlds.(*single); ok {
		one.transport.End(err)
		parting.Wait(one.transport)
	}
	return err
}

// guard makes an error of a panic.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	return f()
}

// A PanicError is a panic of this rank's model, data or callbacks.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("fit: panic: %v", e.Value) }

// Unwrap gives the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// errOver says that there was only one world.
var errOver = errors.New("fit: the world has ended")

// single is the worlds of a run that has one.
type single struct {
	transport ops.Transport
	taken     bool
}

func (s *single) Next(context.Context) (trainer.World, error) {
	if s.taken {
		return nil, errOver
	}
	s.taken = true
	return still{s.transport}, nil
}

// still is a world that nobody waits to be let into.
type still struct{ ops.Transport }

// Done is the transport's, if that has one.
func (s still) Done() <-chan struct{} {
	if d, ok := s.Transport.(interface{ Done() <-chan struct{} }); ok {
		return d.Done()
	}
	none := make(chan struct{})
	close(none)
	return none
}

func (still) Newcomers() error { return nil }

func (still) Carried() {}

func (still) Advanced() {}

// errParted is why a run with ZeRO has one world.
var errParted = errors.New("the world has ended, and with it parts of the optimiser's state, which ZeRO keeps on one rank each: resume from a checkpoint")

// closed is the first world of others, which lets nobody in, as the run could not go on
// in the next.
type closed struct {
	worlds trainer.Worlds
	first  trainer.World
}

func (c *closed) Next(ctx context.Context) (trainer.World, error) {
	if c.first != nil {
		return nil, fmt.Errorf("%w (%w)", errParted, context.Cause(c.first.Context()))
	}
	w, err := c.worlds.Next(ctx)
	if err != nil {
		return nil, err
	}
	c.first = still{w}
	return c.first, nil
}
