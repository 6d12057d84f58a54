package trainer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"peermesh/ops"
	"peermesh/trainer/internal/parting"
)

// Worlds is what an elastic run needs of a mesh: one world after the other.
type Worlds interface {
	// Next waits for the next world. The one before, if there was one, has ended.
	// Its error, when there will be no more, is the run's.
	Next(ctx context.Context) (World, error)
}

// A World is one epoch of a mesh: it never changes, it ends, and its Context says
// why.
type World interface {
	ops.Transport

	// Newcomers is nil as long as nobody waits to be let in. Otherwise it is what to
	// end the world for, so that the next one has room. It is asked between steps and
	// must not block.
	Newcomers() error

	// Carried is told when this rank has all that the run had done before this world.
	// Until then a mesh, if it looks after that, forms no world that counts on this rank
	// for it. It must not block.
	Carried()

	// Advanced is told when all ranks have taken a step in this world. Until then, if all
	// of them start again, a mesh that looks after that has them wait for a peer that was
	// cut off in the world before, as it may have as many steps. It may write to a disk.
	Advanced()
}

// DefaultLinger is how long a rank that has finished waits for others that may
// need its state, when the world ends at that moment.
const DefaultLinger = 10 * time.Second

// An Elastic is a run that goes on when ranks die and when new ones come. It takes
// worlds one after the other, and in each brings all ranks to one state with
// [Carry] and takes steps until the world ends or the run does.
//
// A step is all or nothing. Compute may do as it likes with gradients, with
// State.Buffers and with State.Random, and may fail: then the step has not been, on
// this rank, and its samples are dealt again in the next world. Only when Compute
// has returned without an error, so that this rank has all ranks' gradients, does
// Update change the rest of the state. If some ranks got that far and others did
// not, the others get the state from them.
//
// So all ranks of a world are bit-identical after every step, and every sample of
// an epoch counts once, whatever happened in between.
type Elastic struct {
	State   *State
	Sampler Dealer
	Group   ops.Config // of every world's group

	Epochs int64 // how many; zero: no bound
	Steps  int64 // how many at most; zero: no bound. The epoch that this cuts short has no end

	// Begin prepares for a world: it makes a DDP of the group, for example, or loads
	// a checkpoint when State.Step is 0. It runs after Carry, so all ranks have one
	// state, and may use the group. It may be nil.
	Begin func(ctx context.Context, g *ops.Group) error
	// Compute does this rank's share of a step: forward, backward, and the averaging
	// of gradients, weighted by Share.Weight. A rank with no samples takes part in the
	// averaging. State.Buffers and State.Random end up alike on all ranks, as a DDP
	// sees to for buffers. ctx ends with the world.
	Compute func(ctx context.Context, s Share) error
	// Update is the optimiser's step, and that of a schedule of steps. It is this
	// rank's alone, and an error of it ends the run.
	Update func() error

	// AfterStep runs between steps: it reports, or saves a checkpoint. It may use the
	// group and must not change the state. It may be nil. When the world ends at that
	// moment it may have run on some ranks only, and is not called again for this step.
	AfterStep func(ctx context.Context, g *ops.Group) error
	// EpochEnd runs after an epoch's last step, with State still in that epoch, as
	// AfterStep does; but when the world ends while it runs, it is called again in
	// the next, so every epoch has one that ends well on all ranks. It may be nil.
	EpochEnd func(ctx context.Context, g *ops.Group) error
	// UpdateEpoch changes the state between epochs, as a schedule of epochs does. As
	// Update, it is this rank's alone. It may be nil.
	UpdateEpoch func() error

	// Ended hears why a world ended with which the run is not over. It may be nil.
	Ended func(cause error)

	// Linger is how long a rank that has finished looks for another world when the
	// last one ended before all had finished: one of them may need its state. Zero is
	// DefaultLinger.
	Linger time.Duration

	memento memento
	taken   int       // steps in this world
	asked   *ops.Work // whether somebody waits, of the last step that began
	over    bool      // Finish has been called, here or on another rank
}

// A Dealer says which samples are a rank's in the next step after p, and false at the
// end of an epoch. Its answer is a function of its arguments, and Total and the end are
// alike on all ranks. Len is the number of samples of an epoch. An [ElasticSampler] is
// one; so is what reads batches in the order of a stream, and then a Share may do
// without Indices.
type Dealer interface {
	Len() int
	Deal(p Progress, rank, size int) (Share, bool)
}

// Finish ends the run after the step or the epoch at hand, sooner than Epochs and Steps
// do. All ranks call it in the same AfterStep or EpochEnd, on what they have agreed
// there. Where the world ends at that moment, so that only some have, the others learn
// of it in the next one before they take a step.
func (e *Elastic) Finish() { e.over = true }

// ErrUnconfirmed says that this rank has finished the run, and that the world ended
// before it knew the same of the others, with none after it. Its state is whole.
// But if others live on out of its reach, they may have taken the last step once
// more, on their own.
var ErrUnconfirmed = errors.New("trainer: finished, but not known to be so on all ranks")

// Run returns nil when the run has reached its Epochs or Steps on all ranks of the
// last world. An error of this rank's own, as
// opposed to the end of a world, ends the world with that error and is returned;
// so do a panic, which goes on, and the end of ctx.
func (e *Elastic) Run(ctx context.Context, worlds Worlds) error {
	if err := e.check(); err != nil {
		return err
	}
	var w World
	defer func() { parting.Wait(w) }()
	for {
		next, err := e.next(ctx, worlds)
		if err != nil {
			if e.finished() && ctx.Err() == nil {
				return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
			}
			return fmt.Errorf("trainer: the next world: %w", err)
		}
		w = next
		again, err := e.world(ctx, w)
		if !again {
			return err
		}
		if e.Ended != nil {
			e.Ended(err)
		}
	}
}

func (e *Elastic) check() error {
	switch {
	case e.State == nil || e.Sampler == nil || e.Compute == nil || e.Update == nil:
		return errors.New("trainer: Elastic: State, Sampler, Compute and Update are needed")
	case e.Epochs < 0 || e.Steps < 0 || e.Linger < 0:
		return fmt.Errorf("trainer: Elastic: %d epochs, %d steps, lingering %v: want nothing negative", e.Epochs, e.Steps, e.Linger)
	case e.Sampler.Len() == 0:
		return errors.New("trainer: Elastic: no samples")
	}
	return nil
}

// finished reports whether the run is over. The last epoch is over when its end
// has been celebrated.
func (e *Elastic) finished() bool {
	return e.over || e.Epochs > 0 && e.State.Epoch >= e.Epochs || e.Steps > 0 && e.State.Step >= e.Steps
}

// next waits for a world, not for ever when this rank is only there for others.
func (e *Elastic) next(ctx context.Context, worlds Worlds) (World, error) {
	if e.finished() {
		linger := e.Linger
		if linger == 0 {
			linger = DefaultLinger
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, linger)
		defer cancel()
	}
	return worlds.Next(ctx)
}

// world runs in one world, and says whether to go on in another.
func (e *Elastic) world(parent context.Context, w World) (again bool, err error) {
	defer context.AfterFunc(parent, func() { w.End(context.Cause(parent)) })()
	defer func() {
		if p := recover(); p != nil {
			w.End(fmt.Errorf("trainer: panic: %v", p))
			panic(p)
		}
	}()
	err = e.steps(w.Context(), w, ops.NewGroup(w, e.Group))
	if err == nil {
		return false, nil
	}
	own, isOwn := err.(*ownError) // not one within, which would be another rank's
	if isOwn {
		err = own.error
	}
	again = w.Context().Err() != nil && !isOwn
	w.End(err)
	if e.asked != nil {
		<-e.asked.Done() // as the world has ended
	}
	switch {
	case parent.Err() != nil:
		return false, context.Cause(parent)
	case again:
		return true, context.Cause(w.Context())
	}
	return false, err
}

// An ownError is one that no other world would spare us.
type ownError struct{ error }

// own marks the error of what is this rank's alone.
func own(err error) error {
	if err != nil {
		err = &ownError{err}
	}
	return err
}
