package main

import (
	"context"
	"slices"

	"peermesh/trainer"
	"peermesh/trainer/mnist"
	"peermesh/trainer/nn"
)

// testBatch is how many images are tested at once.
const testBatch = 500

// A recipe is one of the two reference programs, as far as they differ.
type recipe struct {
	model     network
	params    []*trainer.Param
	optimizer trainer.Optimizer
	samples   int                             // of this rank, an epoch
	order     func(epoch int) []int           // this rank's samples, in the order of use
	average   func(ctx context.Context) error // leaves the mean of all ranks' gradients
	set       *mnist.Set                      // to train on
	mean, std float32                         // of its pixels
	batch     nn.Batch                        // reused
	of        *mnist.Set                      // that the batch is of
	indices   []int                           // of its samples there
	trace     *timeline                       // of the phases of a step; nil: none
}

// newConvNet is the program of the DDP article, as far as it does not depend on the
// world: how samples are dealt and gradients averaged is in elastic.go.
func newConvNet(p plan, set *mnist.Set) (*recipe, error) {
	model, err := nn.NewConvNet(nn.Config{Seed: p.seed, Threads: p.threads, NoDropout: !p.dropout})
	if err != nil {
		return nil, err
	}
	r := &recipe{model: model, params: model.Params(), set: set, mean: 0.1302, std: 0.3069}
	r.optimizer, err = trainer.NewAdadelta(r.params, trainer.AdadeltaConfig{LR: p.lr})
	return r, err
}

// newTutorial is the program of "Writing Distributed Applications": each rank
// keeps its part of the data, and averages its gradients after the backward
// pass. The seed alone makes all ranks start alike.
func (t *training) newTutorial() (r *recipe, err error) {
	p, g, set := t.plan, t.group, t.data.Train
	r = &recipe{set: set, mean: 0.1307, std: 0.3081}
	r.model, r.optimizer, err = t.tutorialNet(nn.Config{Seed: p.seed, Stream: uint64(g.Rank()), Threads: p.threads, NoDropout: !p.dropout})
	if err != nil {
		return nil, err
	}
	r.params = r.model.Params()
	fractions := make([]float64, g.Size())
	for i := range fractions {
		fractions[i] = 1 / float64(g.Size())
	}
	parts, err := trainer.NewDataPartitioner(set.Len(), fractions, p.seed)
	if err != nil {
		return nil, err
	}
	part := parts.Use(g.Rank())
	r.samples = len(part)
	// The tutorial's DataLoader shuffles a rank's part afresh each epoch.
	shuffle, err := trainer.NewDistributedSampler(len(part), 1, 0, trainer.SamplerConfig{Shuffle: true, Seed: p.seed})
	if err != nil {
		return nil, err
	}
	r.order = func(epoch int) []int {
		shuffle.SetEpoch(epoch)
		order := shuffle.Indices()
		for i, at := range order {
			order[i] = part[at]
		}
		return order
	}
	r.average = func(ctx context.Context) error { return trainer.AverageGradients(ctx, g, r.params) }
	return r, nil
}

// step takes one step on the samples and returns this rank's loss. next are the samples of
// the step after it, if there is one.
func (r *recipe) step(ctx context.Context, indices, next []int) (float64, error) {
	defer r.trace.phase("")
	r.fill(r.set, indices)
	r.trace.phase("forward")
	loss, err := r.model.ForwardBackward(ctx, r.batch, nil)
	if err != nil {
		return 0, err
	}
	if err := r.prefetch(next); err != nil {
		return 0, err
	}
	r.trace.phase("wait")
	if err := r.average(ctx); err != nil {
		return 0, err
	}
	r.trace.phase("optimizer")
	return loss, r.optimizer.Step()
}

// observe has the phases of each step noted; t may be nil.
func (r *recipe) observe(t *timeline) {
	r.trace = t
	if t != nil {
		r.model.OnBackward(func() { t.phase("backward") })
	}
}

// correct counts the images in [lo, hi) whose class the model finds.
func (r *recipe) correct(ctx context.Context, set *mnist.Set, lo, hi int) (int, error) {
	indices := make([]int, 0, hi-lo)
	for i := lo; i < hi; i++ {
		indices = append(indices, i)
	}
	total := 0
	for some := range trainer.Batches(indices, testBatch, false) {
		r.fill(set, some)
		_, right, err := r.model.Evaluate(ctx, r.batch)
		if err != nil {
			return 0, err
		}
		total += right
	}
	return total, nil
}

// fill makes the batch of some images, unless it is that.
func (r *recipe) fill(set *mnist.Set, indices []int) {
	if r.of == set && slices.Equal(r.indices, indices) {
		return
	}
	r.of, r.indices = set, append(r.indices[:0], indices...)
	if n := len(indices); cap(r.batch.Y) < n {
		r.batch = nn.Batch{X: make([]float32, n*mnist.Pixels), Y: make([]uint8, n)}
	}
	r.batch.X = r.batch.X[:len(indices)*mnist.Pixels]
	r.batch.Y = r.batch.Y[:len(indices)]
	set.Fill(r.batch.X, r.batch.Y, indices, r.mean, r.std)
}
