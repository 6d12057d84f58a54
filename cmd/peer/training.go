package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"peermesh/gpu"
	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/mnist"
)

// groupConfig has gradients added up in the order in which trainer/nn adds up the
// samples of a batch: then any number of ranks that is a power of two gets the same
// bits out of one batch that they share.
var groupConfig = ops.Config{Deterministic: true}

// A training is one rank's run on one world.
type training struct {
	plan     plan
	group    *ops.Group
	data     *mnist.Data
	peer     func(rank int) string // a rank's peer ID
	reporter reporter
	more     string // further settings that must be alike, as text
	trace    *timeline
	device   *gpu.Device // nil: the host computes

	recipe *recipe
	taken  int // steps since the beginning
}

// run trains the tutorial's network, tests and reports. Every rank calls the same collectives in the
// same order, because all that decides about them is agreed on first.
func (t *training) run(ctx context.Context) error {
	if err := agree(ctx, t.group, t.settings(), t.peer); err != nil {
		return err
	}
	err := t.trace.compare(ctx, t.group)
	if err != nil {
		return err
	}
	if t.recipe, err = t.newTutorial(); err != nil {
		return err
	}
	t.recipe.observe(t.trace)
	begin := time.Now()
	if err := t.reporter.started(t.facts()); err != nil {
		return err
	}
	var last epochFacts // of the last epoch, whose figures are the run's
	for epoch := 0; epoch < t.plan.epochs && !t.enough(); epoch++ {
		if last, err = t.epoch(ctx, epoch); err != nil {
			return err
		}
		if err := t.reporter.epoch(last); err != nil {
			return err
		}
	}
	last.elapsed = time.Since(begin)
	last.samples = t.taken * t.plan.batch * t.group.Size()
	accuracy, err := t.test(ctx)
	if err != nil {
		return err
	}
	if err := t.trace.gather(ctx, t.group); err != nil {
		return err
	}
	return t.reporter.done(last, accuracy)
}

// facts describes the run before its first step.
func (t *training) facts() startFacts {
	f := startFacts{rank: t.group.Rank(), world: t.group.Size(), peer: t.peer(t.group.Rank()), net: t.plan.net,
		epochs: t.plan.epochs, batch: t.plan.batch, threads: t.plan.threads}
	f.steps = t.plan.epochs * batches(t.data.Train.Len(), t.plan.global())
	if t.plan.steps > 0 {
		f.steps = min(f.steps, t.plan.steps)
	}
	for _, p := range t.recipe.params {
		f.parameters += p.Value.Len()
	}
	return f
}

// perEpoch is the number of steps of a whole epoch, alike on all ranks.
func (t *training) perEpoch() int {
	return batches(t.recipe.samples, t.plan.batch)
}

// enough reports whether --steps have been taken.
func (t *training) enough() bool { return t.plan.steps > 0 && t.taken >= t.plan.steps }

// epoch takes an epoch's steps and compares the outcome over all ranks.
func (t *training) epoch(ctx context.Context, epoch int) (epochFacts, error) {
	begin := time.Now()
	var sum, last float64
	s := stepFacts{epoch: epoch + 1, steps: t.perEpoch()}
	if t.plan.steps > 0 {
		s.steps = min(s.steps, t.plan.steps-t.taken)
	}
	batches := slices.Collect(trainer.Batches(t.recipe.order(epoch), t.plan.batch, false))
	for i, indices := range batches {
		if t.enough() {
			break
		}
		var err error
		begun := time.Now()
		if last, err = t.recipe.step(ctx, indices, t.following(batches[i+1:])); err != nil {
			return epochFacts{}, fmt.Errorf("epoch %d, step %d: %w", s.epoch, s.step+1, err)
		}
		sum += last
		t.taken++
		s.step++
		t.trace.add("steps", fmt.Sprintf("step %d", t.taken), begun, "")
		s.samples += len(indices) * t.group.Size()
		s.taken, s.loss, s.elapsed = t.taken, sum/float64(s.step), time.Since(begin)
		if err := t.reporter.step(s); err != nil {
			return epochFacts{}, err
		}
	}
	f := epochFacts{epoch: s.epoch, steps: t.taken, samples: s.samples}
	var err error
	if f.losses, err = t.losses(ctx, s.loss); err != nil {
		return f, err
	}
	// Every rank adds the same numbers in the same order, and gets the same bits.
	for _, loss := range f.losses {
		f.loss += loss / float64(len(f.losses))
	}
	mean := []float64{last / float64(t.group.Size())}
	if err := t.group.AllReduce(ctx, tensor.Of(mean), tensor.Sum).Wait(); err != nil {
		return f, fmt.Errorf("the last loss of all ranks: %w", err)
	}
	f.lastLoss = mean[0]
	f.hash, err = t.compare(ctx)
	f.elapsed = time.Since(begin)
	return f, err
}

// following is the first of what batches are left, if a step takes it.
func (t *training) following(left [][]int) []int {
	if len(left) == 0 || t.plan.steps > 0 && t.taken+1 >= t.plan.steps {
		return nil
	}
	return left[0]
}

// losses are those of all ranks, by rank.
func (t *training) losses(ctx context.Context, own float64) ([]float64, error) {
	all := make([]float64, t.group.Size())
	if err := t.group.AllGather(ctx, tensor.Of(all), tensor.Of([]float64{own})).Wait(); err != nil {
		return nil, fmt.Errorf("the loss of each rank: %w", err)
	}
	return all, nil
}

// test is the share of the test set that the model gets right. Each rank looks
// at its part; the parameters are the same everywhere, so the sum is what one
// rank alone would find.
func (t *training) test(ctx context.Context) (float64, error) {
	n, rank, size := t.data.Test.Len(), t.group.Rank(), t.group.Size()
	right, err := t.recipe.correct(ctx, t.data.Test, n*rank/size, n*(rank+1)/size)
	if err != nil {
		return 0, fmt.Errorf("testing: %w", err)
	}
	total := []int64{int64(right)}
	if err := t.group.AllReduce(ctx, tensor.Of(total), tensor.Sum).Wait(); err != nil {
		return 0, fmt.Errorf("the test results of all ranks: %w", err)
	}
	return float64(total[0]) / float64(n), nil
}
