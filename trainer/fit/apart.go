package fit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/local"
)

// apart is a rank that steps on its own, with an optimiser of its own, and a Replica that
// brings the models together now and then.
type apart struct {
	replicated // its DDP is of this rank alone, or in a warm-up of all
	replica    *local.Replica
	stats      *stats
	entered    bool // a world, before

	ctx  context.Context // the world's
	g    *ops.Group      // of all
	own  *ops.Group      // of this rank
	warm bool            // whose DDP is of all

	met     bool       // in the step at hand sums travel, with the models
	closing bool       // some rank wants an end, which the next step makes
	since   [2]float64 // losses and samples of this rank's steps since ranks last met
	total   float64    // samples of all ranks in these
	dealt   float64    // and in the step at hand
}

func newApart(m local.Method, whole replicated) (*apart, error) {
	r, err := local.New(m, whole.params)
	if err != nil {
		return nil, fmt.Errorf("fit: %w", err)
	}
	s, err := newStats(whole.config.Buffers)
	return &apart{replicated: whole, replica: r, stats: s}, err
}

// model is what all ranks have alike of it.
func (e *apart) model() []*trainer.Param { return slices.Concat(e.replica.State(), e.stats.kept) }

func (e *apart) begin(ctx context.Context, g *ops.Group) (err error) {
	e.ctx, e.g, e.DDP = ctx, g, nil
	e.closing, e.since, e.total = false, [2]float64{}, 0 // what the dead have not told is not known
	if e.own, err = g.SplitBy(ctx, g.Rank(), 0); err != nil {
		return fmt.Errorf("fit: a group of one: %w", err)
	}
	if !e.entered {
		e.entered = true
		if err := e.stats.recall(); err != nil {
			return err
		}
	}
	return e.replica.Begin(ctx, g)
}

// state has nothing: optimisers' memories differ, and end with their ranks.
func (e *apart) state() ([]*trainer.Param, error) { return nil, nil }

// load begins once more, from the anchor of a checkpoint.
func (e *apart) load([]*trainer.Param) error {
	if err := e.stats.recall(); err != nil {
		return err
	}
	return e.replica.Begin(e.ctx, e.g)
}

// rewind has the model be what all have alike.
func (e *apart) rewind() error {
	if err := e.replica.Rewind(); err != nil {
		return err
	}
	return e.stats.recall()
}

// face has the next step's gradients averaged over all ranks if it is one of a warm-up.
func (e *apart) face() (err error) {
	warm := e.replica.Warm()
	if e.DDP != nil && warm == e.warm {
		return nil
	}
	g := e.own
	if e.warm = warm; warm {
		g = e.g
	}
	e.DDP, err = trainer.NewDDP(e.ctx, g, e.params, e.config)
	return err
}

// alone ends a step's computation where ranks step on their own: with this rank's step, and
// with coming together if that is due. Losses and wishes to stop travel then and only
// then, as a sum in each step would be one latency in each.
func (l *loop[B]) alone(ctx context.Context, total int) error {
	a := l.apart
	a.dealt = float64(total)
	if err := a.Wait(); err != nil {
		return err
	}
	defer a.spare()()
	if err := l.run.hooks(func(c Callback) error { return c.UpdateStart(ctx, l.run) }); err != nil {
		return err
	}
	if l.sums[1] > 0 || a.warm { // without samples there is nothing to learn from
		done := lap(&l.run.times[PhaseUpdate])
		err := l.step(ctx)
		done()
		if err != nil {
			return err
		}
	}
	defer lap(&l.run.times[PhaseWait])()
	settle := a.closing || l.looked(l.run.state.Step+1, l.feed.ends())
	if a.met = settle || a.replica.Due(); !a.met {
		return a.replica.Exchange() // waits for what is late and arrives now
	}
	l.sums[0] += a.since[0]
	l.sums[1] += a.since[1]
	work := l.run.group.AllReduce(ctx, tensor.Of(l.sums[:]), tensor.Sum)
	move := a.replica.Exchange
	if settle {
		move = func() error { return errors.Join(a.replica.Settle(), a.stats.meet(ctx, a.g)) }
	}
	if err := errors.Join(move(), work.Wait()); err != nil {
		return err
	}
	if want := a.total + a.dealt; l.sums[1] != want {
		return fmt.Errorf("fit: data: batches of %v samples in all have %v", want, l.sums[1])
	}
	return nil
}

// looked is whether the model is looked at after a step, and so has to be one: it is
// validated, saved, or the run's result.
func (l *loop[B]) looked(step int64, ends bool) bool {
	t, epoch := &l.t, l.run.state.Epoch+1
	every := func(n, of int64) bool { return n > 0 && of%n == 0 }
	if t.Steps > 0 && step >= t.Steps || t.Valid != nil && every(t.ValidEvery, step) || t.Checkpoints != nil && every(t.CheckpointEvery, step) {
		return true
	}
	return ends && (t.Epochs > 0 && epoch >= t.Epochs ||
		t.Valid != nil && t.ValidEvery == 0 && epoch%t.ValidEpochs == 0 ||
		t.Checkpoints != nil && t.CheckpointEvery == 0)
}

// settled is whether all ranks have one model, as they always do where gradients are
// averaged.
func (l *loop[B]) settled() bool { return l.apart == nil || l.apart.replica.Settled() }

// land has a step count that alone has computed.
func (l *loop[B]) land() error {
	a := l.apart
	if err := a.replica.Commit(); err != nil {
		return err
	}
	if a.replica.Settled() {
		if err := a.stats.keep(); err != nil {
			return err
		}
	}
	l.count(a.met)
	if a.met {
		a.closing = l.sums[2] > 0 && !a.replica.Settled()
		a.since, a.total = [2]float64{}, 0
		return nil
	}
	a.since[0] += l.sums[0]
	a.since[1] += l.sums[1]
	a.total += a.dealt
	return nil
}
