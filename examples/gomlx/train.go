package main

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/graph"
	ml "github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/layers"
	"github.com/gomlx/gomlx/pkg/ml/layers/activations"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/mnist"
)

// The mean and deviation of MNIST's pixels.
const mean, deviation = 0.1307, 0.3081

// sequential has the Go backend run a graph's operations one after the other. Side by
// side, in v0.26.0, they race for a buffer, as the race detector tells.
const sequential = "ops_sequential"

type options struct {
	steps, batch int
	rate         float64
	log          func(format string, args ...any)
}

// perceptron is a network of one hidden layer. It is narrow because the Go backend makes
// in full what GoMLX derives for the gradient of a product: batch × inputs × outputs.
func perceptron(c *ml.Context, x *graph.Node) *graph.Node {
	x = activations.Relu(layers.DenseWithBias(c.In("hidden"), x, 32))
	return layers.DenseWithBias(c.In("out"), x, mnist.Classes)
}

// train trains one rank of a group and returns the model and the share of the test set
// that all ranks together got right.
func train(ctx context.Context, g *ops.Group, data *mnist.Data, o options) (*Model, float64, error) {
	if o.batch < g.Size() || o.batch%g.Size() != 0 || o.batch > data.Train.Len() {
		return nil, 0, fmt.Errorf("a batch of %d for %d ranks: want a multiple, and at most %d samples", o.batch, g.Size(), data.Train.Len())
	}
	backend, err := simplego.New(sequential)
	if err != nil {
		return nil, 0, err
	}
	defer backend.Finalize()
	m, err := New(backend, mnist.Pixels, perceptron, int64(g.Rank()))
	if err != nil {
		return nil, 0, err
	}
	if err := steps(ctx, g, m, data.Train, o); err != nil {
		return nil, 0, err
	}
	accuracy, err := test(ctx, g, m, data.Test)
	return m, accuracy, err
}

func steps(ctx context.Context, g *ops.Group, m *Model, set *mnist.Set, o options) error {
	deal := trainer.SamplerConfig{Shuffle: true, Seed: 1, DropLast: true}
	sampler, err := trainer.NewDistributedSampler(set.Len(), g.Size(), g.Rank(), deal)
	if err != nil {
		return err
	}
	ddp, err := trainer.NewDDP(ctx, g, m.Params(), trainer.DDPConfig{Views: true})
	if err != nil {
		return err
	}
	sgd, err := trainer.NewSGD(m.Params(), trainer.SGDConfig{LR: o.rate, Momentum: 0.9})
	if err != nil {
		return err
	}
	step := 0
	for epoch := 0; step < o.steps; epoch++ {
		sampler.SetEpoch(epoch)
		for indices := range trainer.Batches(sampler.Indices(), o.batch/g.Size(), true) {
			loss, err := m.ForwardBackward(ctx, fill(set, indices), ddp.Ready)
			if err != nil {
				return err
			}
			if err := ddp.Wait(); err != nil {
				return err
			}
			if err := sgd.Step(); err != nil {
				return err
			}
			if step++; step%100 == 0 && g.Rank() == 0 {
				o.log("step %d: rank 0's loss %.4f", step, loss)
			}
			if step == o.steps {
				break
			}
		}
	}
	return nil
}

// test counts each image of a set on one rank, and adds up over the ranks.
func test(ctx context.Context, g *ops.Group, m *Model, set *mnist.Set) (float64, error) {
	sampler, err := trainer.NewEvalSampler(set.Len(), g.Size(), g.Rank())
	if err != nil {
		return 0, err
	}
	count := make([]int64, 1)
	for indices := range trainer.Batches(sampler.Indices(), 500, false) {
		n, err := m.Right(fill(set, indices))
		if err != nil {
			return 0, err
		}
		count[0] += int64(n)
	}
	if err := g.AllReduce(ctx, tensor.Of(count), tensor.Sum).Wait(); err != nil {
		return 0, err
	}
	return float64(count[0]) / float64(set.Len()), nil
}

// fill makes a batch of a set's images. GoMLX may keep it, so it has memory of its own.
func fill(set *mnist.Set, indices []int) Batch {
	b := Batch{X: make([]float32, len(indices)*mnist.Pixels), Y: make([]int32, len(indices))}
	labels := make([]uint8, len(indices))
	set.Fill(b.X, labels, indices, mean, deviation)
	for i, v := range labels {
		b.Y[i] = int32(v)
	}
	return b
}
