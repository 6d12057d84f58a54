package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/compress"
	"peermesh/trainer/local"
)

// An elastic trains the ConvNet in one world after the other: package trainer takes
// the steps, this type says what a step is and tells of it.
type elastic struct {
	*training
	trainer.Elastic
	checkpoints *trainer.Checkpoints // nil: none
	every       int                  // steps between them
	resume      bool
	measure     bool
	// present is told of the world that steps are about to be taken in.
	present func() (peer func(rank int) string)

	ledger  *ledger
	ddp     *trainer.DDP
	hook    compress.Hook  // nil: none
	replica *local.Replica // in place of ddp and hook, where ranks step on their own; nil: they do not
	fatal   error          // what no other world would mend

	begun, epochBegun time.Time
	started, first    bool    // the run; no step has been taken in this world
	ours, oursBefore  int     // steps of this epoch that this rank took part in; samples used before them
	ownLoss           float64 // sum over those steps
	trained           int     // samples of all ranks, in all steps since begun
	total             int     // samples of the step that is being taken
	last              epochFacts
	accuracy          *float64 // of the test, once it has been taken
}

// newElastic builds the model and what surrounds it; the ranks come later.
func newElastic(t *training, c *Checkpointing) (*elastic, error) {
	r, err := t.convNet()
	if err != nil {
		return nil, err
	}
	t.recipe = r
	// All ranks together take one batch, whatever their number: a step, and so the
	// rate, means the same in a world that has shrunk.
	sampler, err := trainer.NewElasticSampler(t.data.Train.Len(), trainer.ElasticConfig{
		Shuffle: true, Seed: t.plan.seed, Global: t.plan.global()})
	if err != nil {
		return nil, err
	}
	e := &elastic{training: t, ledger: newLedger(), every: c.Every, resume: c.Resume, measure: c.Measure}
	if c.Checkpoint != "" {
		e.checkpoints = &trainer.Checkpoints{Dir: c.Checkpoint, Keep: c.Keep}
	}
	state := &trainer.State{Tensors: append(append(r.params[:len(r.params):len(r.params)], r.optimizer.State()...), e.ledger.state()...)}
	if err := e.newReplica(); err != nil {
		return nil, err
	}
	if e.replica != nil {
		state.Tensors = append(e.replica.State(), e.ledger.state()...)
	} else if e.hook, err = t.plan.hook(r.params); err != nil {
		return nil, err
	}
	if e.hook != nil {
		state.Buffers = e.hook.State()
	}
	e.Elastic = trainer.Elastic{State: state, Sampler: sampler, Group: groupConfig,
		Epochs: int64(t.plan.epochs), Steps: int64(t.plan.steps),
		Begin: e.begin, Compute: e.lost(e.compute), Update: e.update, AfterStep: e.afterStep,
		EpochEnd: e.epochEnd, UpdateEpoch: e.updateEpoch}
	return e, nil
}

// over is why there is no point in another world.
func (e *elastic) over() error { return e.fatal }

// begin prepares for a world. A difference in what it compares first is fatal to all
// ranks alike, so they part only when all of them know.
func (e *elastic) begin(ctx context.Context, g *ops.Group) error {
	e.group, e.peer, e.first = g, e.present(), true
	if err := agree(ctx, g, e.settings(), e.peer); err != nil {
		if ctx.Err() == nil {
			e.fatal = err
		}
		return errors.Join(err, g.Barrier(ctx).Wait())
	}
	if e.measure {
		if err := g.Measure(ctx); err != nil {
			return fmt.Errorf("measuring the links: %w", err)
		}
	}
	if e.resume && e.State.Step == 0 {
		switch err := e.checkpoints.Load(ctx, g, e.State); {
		case errors.Is(err, trainer.ErrNoCheckpoint):
			logger.Infof("no checkpoint in %s: the run starts at its beginning", e.checkpoints.Dir)
		case err != nil:
			return err
		default:
			logger.Infof("resumed at %v", e.State.Progress)
		}
	}
	c := trainer.DDPConfig{Views: true}
	if e.hook != nil {
		e.hook.Reset()
		c.Hook = e.hook
	}
	var err error
	if e.replica != nil {
		err = e.replica.Begin(ctx, g)
	} else {
		e.ddp, err = trainer.NewDDP(ctx, g, e.recipe.params, c)
	}
	if err != nil {
		return err
	}
	e.recipe.model.SetStream(uint64(g.Rank()))
	e.startEpoch()
	if e.started {
		return nil
	}
	e.started, e.begun = true, time.Now()
	return e.reporter.started(e.facts())
}

// startEpoch begins the account of what this rank does in an epoch.
func (e *elastic) startEpoch() {
	e.epochBegun, e.ours, e.ownLoss, e.oursBefore = time.Now(), 0, 0, int(e.State.Consumed)
}

// compute is this rank's share of a step.
func (e *elastic) compute(ctx context.Context, s trainer.Share) error {
	e.total = s.Total
	e.recipe.model.SetStep(s.Step)
	take, wait := e.together, func() error { return e.ddp.Wait() }
	if e.replica != nil {
		take, wait = e.alone, func() error { return nil }
	}
	loss, err := take(ctx, s)
	defer e.trace.phase("")
	if err != nil {
		return err
	}
	if err := e.recipe.prefetch(e.following(s)); err != nil {
		return err
	}
	e.trace.phase("wait")
	e.ledger.note(s.Indices, loss)
	sums := e.group.AllReduce(ctx, tensor.Of(e.ledger.step), tensor.Sum)
	if err := errors.Join(wait(), sums.Wait()); err != nil {
		return fmt.Errorf("epoch %d, step %d: %w", s.Epoch+1, s.Step+1, err)
	}
	e.ours++
	e.ownLoss += loss
	return nil
}

// together computes gradients, which are on their way to be averaged when it returns.
func (e *elastic) together(ctx context.Context, s trainer.Share) (float64, error) {
	r := e.recipe
	e.ddp.Weigh(s.Weight())
	if len(s.Indices) == 0 {
		e.ddp.Idle()
		return 0, nil
	}
	r.fill(r.set, s.Indices)
	r.trace.phase("forward")
	return r.model.ForwardBackward(ctx, r.batch, e.ddp.Ready)
}

// update makes the step count, in the parameters and in the ledger.
func (e *elastic) update() error {
	e.trace.phase("optimizer")
	defer e.trace.phase("")
	step := e.recipe.optimizer.Step
	if e.replica != nil {
		step = e.replica.Commit
	}
	if err := step(); err != nil {
		return err
	}
	e.ledger.commit()
	e.trained += e.total
	return nil
}

func (e *elastic) updateEpoch() error {
	e.ledger.clear()
	e.startEpoch()
	e.oursBefore = 0
	return nil
}

// perEpoch is the number of steps of a whole epoch.
func (e *elastic) perEpoch() int {
	return batches(e.Sampler.Len(), e.plan.global())
}

// afterStep tells of a step, and keeps the state now and then. A disk that is full
// is no reason to end the run.
func (e *elastic) afterStep(ctx context.Context, g *ops.Group) error {
	e.taken = int(e.State.Step)
	used := int(e.State.Consumed)
	s := stepFacts{epoch: int(e.State.Epoch) + 1, step: batches(used, e.plan.global()), steps: e.perEpoch(), taken: e.taken, first: e.first,
		loss: e.ledger.loss(), samples: used - e.oursBefore, elapsed: time.Since(e.epochBegun)}
	e.first = false
	if err := e.reporter.step(s); err != nil {
		return err
	}
	if e.checkpoints != nil && e.taken%e.every == 0 {
		if err := e.checkpoints.Save(ctx, g, e.State); err != nil {
			if ctx.Err() != nil {
				return err
			}
			logger.Errorf("no checkpoint at %v, and the run goes on: %v", e.State.Progress, remedied(err))
		}
	}
	if e.Steps > 0 && e.State.Step >= e.Steps { // an epoch that is cut short has no end
		return e.account(ctx)
	}
	return nil
}

// epochEnd compares the outcome of an epoch over all ranks.
func (e *elastic) epochEnd(ctx context.Context, _ *ops.Group) error {
	if err := e.ledger.audit(e.Sampler.Len()); err != nil {
		return err
	}
	return e.account(ctx)
}

// account tells of an epoch, and after the last one tests.
func (e *elastic) account(ctx context.Context) error {
	f := epochFacts{epoch: int(e.State.Epoch) + 1, steps: int(e.State.Step),
		loss: e.ledger.loss(), lastLoss: e.ledger.lastLoss(), samples: e.ledger.samples(), marks: e.ledger.epoch[ledgerMarks]}
	own := e.ownLoss / float64(e.ours) // of a rank that has come late, not a number
	var err error
	if f.losses, err = e.losses(ctx, own); err != nil {
		return err
	}
	if f.hash, err = e.compare(ctx); err != nil {
		return err
	}
	f.elapsed = time.Since(e.epochBegun)
	e.last = f
	if err := e.reporter.epoch(f); err != nil {
		return err
	}
	if f.epoch < e.plan.epochs && (e.Steps == 0 || e.State.Step < e.Steps) {
		return nil
	}
	accuracy, err := e.test(ctx)
	if err == nil {
		e.accuracy = &accuracy
	}
	return err
}

// done tells of the whole run. If the world has ended before all ranks knew of its
// last step, or if there was no step to take, this rank tests alone: its parameters
// are those of all.
func (e *elastic) done(ctx context.Context) error {
	f := e.last
	f.elapsed, f.samples, f.steps = time.Since(e.begun), e.trained, int(e.State.Step)
	if e.accuracy == nil {
		n := e.data.Test.Len()
		if e.replica != nil { // others may have given this rank the end of the run
			if err := e.replica.Rewind(); err != nil {
				return err
			}
		}
		right, err := e.recipe.correct(ctx, e.data.Test, 0, n)
		if err != nil {
			return fmt.Errorf("testing: %w", err)
		}
		hash, err := trainer.Hash(e.recipe.params)
		if err != nil {
			return err
		}
		e.accuracy, f.hash, f.epoch = new(float64(right)/float64(n)), fmt.Sprintf("%x", hash), int(e.State.Epoch)
	}
	return e.reporter.done(f, *e.accuracy)
}
