package fit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/trainer"
)

// A loop is a Trainer at work: what a [trainer.Elastic] calls, in the order of the
// methods.
type loop[B any] struct {
	t       Trainer[B] // with its defaults
	run     *Run
	elastic trainer.Elastic
	feed    *feed[B]

	engine   engine
	apart    *apart      // the engine, where ranks step on their own; else nil
	hook     keepingHook // nil without
	schedule *trainer.Schedule
	plateau  *trainer.ReduceLROnPlateau
	scaler   *trainer.Scaler

	epoch    []float64 // state: the sum of the losses of its samples, and their number
	watched  []float64 // a memory: what the plateau will be told of this epoch, and whether (1) there is anything
	memories []memory

	begun     bool
	started   int64      // the epoch whose EpochStart has been; -1: none
	sums      [3]float64 // of the step at hand, over all ranks: losses, samples, who wants an end
	loss      float64    // of the step at hand, on this rank: what sums[0] was
	lacking   bool       // the last backward has left out a gradient, which Wait will name
	further   int64      // samples of the step at hand beside those of its first batch
	validated int64      // the step of the last validation in this world; -1: none
	between   bool       // an epoch has ended, and its end is not over
}

// begin prepares for a world: all ranks have one state.
func (l *loop[B]) begin(ctx context.Context, g *ops.Group) error {
	l.run.enter(g)
	l.feed.close() // whose stream is of the last world
	l.feed.ctx = ctx
	if err := l.compareSettings(ctx, g); err != nil {
		return err
	}
	if l.hook != nil {
		l.hook.Reset()
	}
	if err := l.engine.begin(ctx, g); err != nil {
		return err
	}
	if err := l.synchronize(ctx, g); err != nil {
		return err
	}
	resumed, err := l.resume(ctx, g)
	if err != nil {
		return err
	}
	l.recall()
	l.validated = -1 // who is new has not been there
	if s, ok := l.t.Model.(interface{ SetStream(s uint64) }); ok {
		s.SetStream(uint64(g.Rank()))
	}
	if err := l.first(ctx, g); err != nil {
		return err
	}
	if err := l.run.hooks(func(c Callback) error { return c.WorldStart(ctx, l.run) }); err != nil {
		return err
	}
	return l.again(ctx, g, resumed)
}

// first is what comes before the first step of this process; but for the sanity check, in
// which all ranks of a world take part as long as there has been no step.
func (l *loop[B]) first(ctx context.Context, g *ops.Group) error {
	begun := l.begun
	if !begun {
		l.begun, l.run.began = true, time.Now()
		l.run.optimizer = l.engine.optimizer()
	}
	if l.t.Valid != nil && l.t.Sanity > 0 && l.run.state.Step == 0 {
		if _, err := l.evaluate(ctx, g, limit(l.t.Valid, l.t.Sanity, true)); err != nil {
			return fmt.Errorf("fit: sanity check: %w", err)
		}
	}
	if begun {
		return nil
	}
	return l.run.hooks(func(c Callback) error { return c.FitStart(ctx, l.run) })
}

// compute is this rank's share of a step: its batches, and the averaging of their
// gradients.
func (l *loop[B]) compute(ctx context.Context, s trainer.Share) error {
	if l.feed.err == nil {
		l.run.perEpoch = l.feed.perEpoch()
	}
	if l.started != s.Epoch {
		if err := l.run.hooks(func(c Callback) error { return c.EpochStart(ctx, l.run) }); err != nil {
			return err
		}
		l.started = s.Epoch
	}
	if err := l.run.hooks(func(c Callback) error { return c.StepStart(ctx, l.run) }); err != nil {
		return err
	}
	l.sums, l.lacking = [3]float64{}, false
	if l.apart != nil {
		if err := l.apart.face(); err != nil {
			return err
		}
	}
	total, err := l.batches(ctx, s)
	if err != nil {
		return err
	}
	l.loss, l.further = l.sums[0], int64(total-s.Total)
	if err := l.prefetch(s); err != nil {
		return err
	}
	if l.run.stop != "" {
		l.sums[2] = 1
	}
	if l.apart != nil {
		return l.alone(ctx, total)
	}
	if err := l.await(ctx); err != nil {
		return err
	}
	if l.sums[1] != float64(total) {
		return fmt.Errorf("fit: data: batches of %d samples in all have %v", total, l.sums[1])
	}
	return nil
}

// await waits for the gradients, and for the sums over all ranks, which travel beside
// them. Which parameters are unused is known to Wait only, which then sends more: in
// that case the sums follow, as the order must be the same on all ranks. After an error they
// do not, lest ranks end with two operations that do not match rather than with it.
func (l *loop[B]) await(ctx context.Context) error {
	defer lap(&l.run.times[PhaseWait])()
	sums := tensor.Of(l.sums[:])
	if l.t.DDP.FindUnused || l.t.DDP.Static || l.engine.Err() != nil || l.lacking {
		if err := l.engine.Wait(); err != nil {
			return err
		}
		return l.run.group.AllReduce(ctx, sums, tensor.Sum).Wait()
	}
	work := l.run.group.AllReduce(ctx, sums, tensor.Sum)
	return errors.Join(l.engine.Wait(), work.Wait())
}

// update makes the step count.
func (l *loop[B]) update() error {
	if l.apart != nil {
		return l.land()
	}
	ctx := l.feed.ctx
	defer l.engine.spare()()
	if err := l.run.hooks(func(c Callback) error { return c.UpdateStart(ctx, l.run) }); err != nil {
		return err
	}
	defer lap(&l.run.times[PhaseUpdate])()
	if err := l.step(ctx); err != nil {
		_, ours := errors.AsType[*trainer.NormError](err) // as it is every rank's, some may have ended the world with it
		if l.t.ZeRO != nil && ctx.Err() != nil && !ours {
			err = fmt.Errorf("fit: %w (%w)", errParted, err)
		}
		return err
	}
	l.count(true)
	return nil
}

// count has a step count in all but the parameters, and the sums over ranks where there
// are some.
func (l *loop[B]) count(summed bool) {
	if l.schedule != nil && !l.t.ByEpoch {
		l.schedule.Step()
	}
	if summed {
		l.epoch[0] += l.sums[0]
		l.epoch[1] += l.sums[1]
	}
	l.run.state.Consumed += l.further // Elastic adds those that it has dealt
	l.memorise()
}
