package fit

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	memories []memory

	begun     bool
	started   int64      // the epoch whose EpochStart has been; -1: none
	sums      [3]float64 // of the step at hand, over all ranks: losses, samples, who wants an end
	further   int64      // samples of the step at hand beside those of its first batch
	validated int64      // the step of the last validation
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
	if err := l.resume(ctx, g); err != nil {
		return err
	}
	l.recall()
	if s, ok := l.t.Model.(interface{ SetStream(s uint64) }); ok {
		s.SetStream(uint64(g.Rank()))
	}
	if !l.begun {
		if err := l.first(ctx, g); err != nil {
			return err
		}
	}
	return l.run.hooks(func(c Callback) error { return c.WorldStart(ctx, l.run) })
}

// first is what comes before the first step of this process.
func (l *loop[B]) first(ctx context.Context, g *ops.Group) error {
	l.begun, l.run.began = true, time.Now()
	l.run.optimizer = l.engine.optimizer()
	if l.t.Valid != nil && l.t.Sanity > 0 && l.run.state.Step == 0 {
		if _, err := l.evaluate(ctx, g, limit(l.t.Valid, l.t.Sanity, true)); err != nil {
			return fmt.Errorf("fit: sanity check: %w", err)
		}
	}
	return l.run.hooks(func(c Callback) error { return c.FitStart(ctx, l.run) })
}

// compute is this rank's share of a step: its batches, and the averaging of their
// gradients.
func (l *loop[B]) compute(ctx context.Context, s trainer.Share) error {
	if l.started != s.Epoch {
		if err := l.run.hooks(func(c Callback) error { return c.EpochStart(ctx, l.run) }); err != nil {
			return err
		}
		l.started = s.Epoch
	}
	if err := l.run.hooks(func(c Callback) error { return c.StepStart(ctx, l.run) }); err != nil {
		return err
	}
	l.sums = [3]float64{}
	if l.apart != nil {
		if err := l.apart.face(); err != nil {
			return err
		}
	}
	total, err := l.batches(ctx, s)
	if err != nil {
		return err
	}
	l.further = int64(total - s.Total)
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
// that case the sums follow, as the order must be the same on all ranks.
func (l *loop[B]) await(ctx context.Context) error {
	defer lap(&l.run.times[PhaseWait])()
	sums := tensor.Of(l.sums[:])
	if l.t.DDP.FindUnused || l.t.DDP.Static {
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
	if err := l.run.hooks(func(c Callback) error { return c.UpdateStart(ctx, l.run) }); err != nil {
		return err
	}
	defer lap(&l.run.times[PhaseUpdate])()
	if err := l.step(ctx); err != nil {
		if l.t.ZeRO != nil && ctx.Err() != nil {
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

// afterStep tells of a step, and validates and saves when it is time.
func (l *loop[B]) afterStep(ctx context.Context, g *ops.Group) error {
	r := l.run
	r.taken++
	summed := l.apart == nil || l.apart.met
	if summed {
		r.samples += int64(l.sums[1])
		r.metrics[TrainLoss] = l.sums[0] / l.sums[1]
		r.metrics[EpochLoss] = l.epoch[0] / l.epoch[1]
	}
	if r.Logging() && l.epoch[1] > 0 {
		r.Log(TrainLoss, r.metrics[TrainLoss])
		r.Log("epoch", float64(r.state.Epoch))
	}
	if err := r.hooks(func(c Callback) error { return c.StepEnd(ctx, r) }); err != nil {
		return err
	}
	over := summed && l.sums[2] > 0 && l.settled()
	if l.t.ValidEvery > 0 && r.state.Step%l.t.ValidEvery == 0 {
		if err := l.validate(ctx, g); err != nil {
			return err
		}
		wanted, err := l.agree(ctx, g)
		if err != nil {
			return err
		}
		over = over || wanted
	}
	last := over || l.t.Steps > 0 && r.state.Step >= l.t.Steps
	if last {
		if err := l.conclude(ctx, g); err != nil {
			return err
		}
	}
	if every := l.t.CheckpointEvery; every > 0 && r.state.Step%every == 0 || last {
		if err := l.keep(ctx, g); err != nil {
			return err
		}
	}
	return l.leave(over)
}

// leave ends a step or an epoch, and with it the run if that is over early.
func (l *loop[B]) leave(over bool) error {
	if over {
		l.run.stopped = true
		l.elastic.Finish()
	}
	return l.run.flush()
}

// conclude is the end of an epoch that is cut short, with the last validation.
func (l *loop[B]) conclude(ctx context.Context, g *ops.Group) error {
	if l.t.Valid != nil && l.validated != l.run.state.Step {
		if err := l.validate(ctx, g); err != nil {
			return err
		}
	}
	l.run.Log(EpochLoss, l.run.metrics[EpochLoss])
	return l.run.hooks(func(c Callback) error { return c.EpochEnd(ctx, l.run) })
}

// epochEnd is the end of an epoch, with the state still in it.
func (l *loop[B]) epochEnd(ctx context.Context, g *ops.Group) error {
	r := l.run
	l.between = true
	defer func() { l.between = false }()
	done := r.state.Epoch + 1
	due := l.t.ValidEvery == 0 && done%l.t.ValidEpochs == 0 || l.t.Epochs > 0 && done >= l.t.Epochs
	if !l.settled() && l.looked(r.state.Step, true) {
		return fmt.Errorf("fit: Local: the epoch ends after %d of %d samples, before its ranks have one model: want data that know their length", r.state.Consumed, l.t.Train.Len())
	}
	if l.t.Valid != nil && due && (l.t.ValidEvery == 0 || l.validated != r.state.Step) {
		if err := l.validate(ctx, g); err != nil {
			return err
		}
	}
	r.Log(EpochLoss, l.epoch[0]/l.epoch[1])
	r.Log("epoch", float64(r.state.Epoch))
	if err := r.hooks(func(c Callback) error { return c.EpochEnd(ctx, r) }); err != nil {
		return err
	}
	if l.t.CheckpointEvery == 0 || l.t.Epochs > 0 && done >= l.t.Epochs {
		if err := l.keep(ctx, g); err != nil {
			return err
		}
	}
	over, err := l.agree(ctx, g)
	if err != nil {
		return err
	}
	if !l.settled() { // the next step comes to one model, and is the last
		l.apart.closing, over = l.apart.closing || over, false
	}
	return l.leave(over)
}

// updateEpoch changes what epochs change.
func (l *loop[B]) updateEpoch() error {
	if l.schedule != nil && l.t.ByEpoch {
		l.schedule.Step()
	}
	if l.plateau != nil && l.validated == l.run.state.Step {
		value, err := lookUp(l.run, l.t.Monitor)
		if err != nil {
			return fmt.Errorf("fit: plateau: %w", err)
		}
		l.plateau.Step(value)
	}
	clear(l.epoch)
	l.memorise()
	return nil
}

// agree is whether any rank wants an end. All ranks ask at once.
func (l *loop[B]) agree(ctx context.Context, g *ops.Group) (bool, error) {
	vote := []bool{l.run.stop != ""}
	if err := g.AllReduce(ctx, tensor.Of(vote), tensor.Max).Wait(); err != nil {
		return false, fmt.Errorf("fit: asking whether to stop: %w", err)
	}
	return vote[0], nil
}

// A memory is what a Stateful callback remembers. Its live numbers change in hooks, and
// so before the others' do; those of the state only when a step or an epoch does count
// on this rank, so that ranks at one place of a run have one state.
type memory struct {
	live  []float64
	state *trainer.Param
	kept  []float64 // the elements of state
}

// remembered makes the memories of callbacks.
func remembered(callbacks []Callback) ([]memory, error) {
	var all []memory
	for _, c := range callbacks {
		s, ok := c.(Stateful)
		if !ok {
			continue
		}
		if c.Ranks() != EveryRank {
			return nil, fmt.Errorf("fit: callback %T has a memory and is not called on every rank", c)
		}
		name, live := s.Memory()
		kept := slices.Clone(live)
		all = append(all, memory{live, param("callback."+name, kept), kept})
	}
	return all, nil
}

// memorise has what callbacks remember count, with the step or epoch that does.
func (l *loop[B]) memorise() {
	for _, m := range l.memories {
		copy(m.kept, m.live)
	}
}

// recall gives callbacks what counts: what they have learnt since has not been.
func (l *loop[B]) recall() {
	for _, m := range l.memories {
		copy(m.live, m.kept)
	}
}
