package main

import (
	"context"
	"fmt"
	"io"

	"peermesh/ops"
	"peermesh/trainer"
	"peermesh/trainer/mnist"
	"peermesh/trainer/nn"
)

const (
	seed        = 1234 // on every rank the same: so all start with the same parameters
	globalBatch = 128  // of all ranks together
)

// average trains one epoch: each rank on a part of the data that is its own, with the mean
// of all ranks' gradients.
func average(ctx context.Context, g *ops.Group, out io.Writer) error {
	data, err := mnist.Load(ctx, mnist.Config{})
	if err != nil {
		return err
	}
	fractions := make([]float64, g.Size())
	for i := range fractions {
		fractions[i] = 1 / float64(g.Size())
	}
	parts, err := trainer.NewDataPartitioner(data.Train.Len(), fractions, seed)
	if err != nil {
		return err
	}
	model, err := nn.NewTutorial(nn.Config{Seed: seed, Stream: uint64(g.Rank())})
	if err != nil {
		return err
	}
	opt, err := trainer.NewSGD(model.Params(), trainer.SGDConfig{LR: 0.01, Momentum: 0.5})
	if err != nil {
		return err
	}
	sum, batches := 0.0, 0
	for indices := range trainer.Batches(parts.Use(g.Rank()), globalBatch/g.Size(), false) {
		loss, err := model.ForwardBackward(ctx, images(data.Train, indices), nil)
		if err != nil {
			return err
		}
		if err := trainer.AverageGradients(ctx, g, model.Params()); err != nil { // all_reduce, and divide
			return err
		}
		if err := opt.Step(); err != nil {
			return err
		}
		sum, batches = sum+loss, batches+1
	}
	fmt.Fprintf(out, "Rank %d, epoch 1: %.4f\n", g.Rank(), sum/float64(batches))
	return nil
}

// images makes a batch of the images with these indices.
func images(s *mnist.Set, indices []int) nn.Batch {
	b := nn.Batch{X: make([]float32, len(indices)*mnist.Pixels), Y: make([]uint8, len(indices))}
	s.Fill(b.X, b.Y, indices, 0.1307, 0.3081) // the mean and deviation of MNIST's pixels
	return b
}
