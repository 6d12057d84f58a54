package fit

import (
	"context"
	"fmt"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

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
	return l.interlude(ctx, g, summed && l.sums[2] > 0 && l.settled())
}

// interlude is what comes between a step that counts and the next: a validation, a
// checkpoint, and the end of the run, for which over is that some rank wants it.
func (l *loop[B]) interlude(ctx context.Context, g *ops.Group, over bool) error {
	step := l.run.state.Step
	if every := l.t.ValidEvery; every > 0 && step%every == 0 {
		if err := l.validate(ctx, g); err != nil {
			return err
		}
		wanted, err := l.agree(ctx, g)
		if err != nil {
			return err
		}
		over = over || wanted
	}
	last := over || l.enough()
	if last {
		if err := l.conclude(ctx, g); err != nil {
			return err
		}
		wanted, err := l.agree(ctx, g) // as after an epoch, for Run.Stopped
		if err != nil {
			return err
		}
		over = over || wanted
	}
	if every := l.t.CheckpointEvery; every > 0 && step%every == 0 || last {
		if err := l.keep(ctx, g); err != nil {
			return err
		}
	}
	if last {
		l.elastic.Finish()
	}
	return l.leave(over)
}

// again is the interlude after the last step that counts, at the beginning of a world: the
// one before may have ended in it, and if it ended later, what callbacks have learnt in it has
// been forgotten with the step that followed. A checkpoint has all of it, and so has an epoch
// that begins.
func (l *loop[B]) again(ctx context.Context, g *ops.Group, resumed bool) error {
	switch {
	case resumed:
		if l.enough() {
			l.elastic.Finish()
		}
		return nil
	case l.run.state.Consumed == 0:
		return nil
	}
	return l.interlude(ctx, g, false)
}

// enough is whether the run has its number of steps. The Elastic is not told that, as it
// would not come back to an end that a world's has cut off.
func (l *loop[B]) enough() bool { return l.t.Steps > 0 && l.run.state.Step >= l.t.Steps }

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
	if err := l.revalidate(ctx, g); err != nil {
		return err
	}
	l.logEpoch()
	return l.run.hooks(func(c Callback) error { return c.EpochEnd(ctx, l.run) })
}

// revalidate validates, unless that has been done after this step, in this world.
func (l *loop[B]) revalidate(ctx context.Context, g *ops.Group) error {
	if l.t.Valid == nil || l.validated == l.run.state.Step {
		return nil
	}
	return l.validate(ctx, g)
}

// logEpoch logs the epoch's loss, as far as ranks have told each other theirs.
func (l *loop[B]) logEpoch() {
	if l.epoch[1] > 0 {
		l.run.Log(EpochLoss, l.epoch[0]/l.epoch[1])
	}
}

// epochEnd is the end of an epoch, with the state still in it.
func (l *loop[B]) epochEnd(ctx context.Context, g *ops.Group) error {
	r := l.run
	l.between = true
	defer func() { l.between = false }()
	if !l.settled() && l.looked(r.state.Step, true) {
		return fmt.Errorf("fit: Local: the epoch ends after %d of %d samples, before its ranks have one model: want data that know their length", r.state.Consumed, l.t.Train.Len())
	}
	done := r.state.Epoch + 1
	final := l.t.Epochs > 0 && done >= l.t.Epochs
	if final || l.t.ValidEvery == 0 && done%l.t.ValidEpochs == 0 {
		if err := l.revalidate(ctx, g); err != nil {
			return err
		}
	}
	l.logEpoch()
	r.Log("epoch", float64(r.state.Epoch))
	if err := r.hooks(func(c Callback) error { return c.EpochEnd(ctx, r) }); err != nil {
		return err
	}
	over, err := l.agree(ctx, g)
	if err != nil {
		return err
	}
	if !l.settled() { // the next step comes to one model, and is the last
		l.apart.closing, over = l.apart.closing || over, false
	}
	if over {
		if err := l.revalidate(ctx, g); err != nil {
			return err
		}
	}
	if l.t.CheckpointEvery == 0 || final || over {
		if err := l.keep(ctx, g); err != nil {
			return err
		}
	}
	return l.leave(over)
}

// updateEpoch changes what epochs change.
func (l *loop[B]) updateEpoch() error {
	if l.schedule != nil && l.t.ByEpoch {
		l.schedule.Step()
	}
	if l.plateau != nil && l.watched[1] > 0 {
		l.plateau.Step(l.watched[0])
		clear(l.watched)
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
