package main

import (
	"context"
	"fmt"
	"io"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/mnist"
	"peermesh/trainer/nn"
)

// ddp trains the article's ConvNet for one epoch. Gradients travel in buckets while the
// backward pass goes on.
func ddp(ctx context.Context, g *ops.Group, out io.Writer) error {
	data, err := mnist.Load(ctx, mnist.Config{})
	if err != nil {
		return err
	}
	model, err := nn.NewConvNet(nn.Config{Stream: uint64(g.Rank())})
	if err != nil {
		return err
	}
	parallel, err := trainer.NewDDP(ctx, g, model.Params(), trainer.DDPConfig{}) // rank 0's parameters, to all
	if err != nil {
		return err
	}
	opt, err := trainer.NewAdadelta(model.Params(), trainer.AdadeltaConfig{LR: 0.5})
	if err != nil {
		return err
	}
	sampler, err := trainer.NewDistributedSampler(data.Train.Len(), g.Size(), g.Rank(), trainer.SamplerConfig{Shuffle: true})
	if err != nil {
		return err
	}
	for indices := range trainer.Batches(sampler.Indices(), globalBatch/g.Size(), false) {
		if _, err := model.ForwardBackward(ctx, images(data.Train, indices), parallel.Ready); err != nil {
			return err
		}
		if err := parallel.Wait(); err != nil { // the gradients are the mean now
			return err
		}
		if err := opt.Step(); err != nil {
			return err
		}
	}
	return test(ctx, g, model, data.Test, out)
}

// test has each rank look at its share of the test images, and adds up who was right.
func test(ctx context.Context, g *ops.Group, model *nn.Net, set *mnist.Set, out io.Writer) error {
	sampler, err := trainer.NewEvalSampler(set.Len(), g.Size(), g.Rank())
	if err != nil {
		return err
	}
	right := []int64{0}
	for indices := range trainer.Batches(sampler.Indices(), 500, false) {
		_, correct, err := model.Evaluate(ctx, images(set, indices))
		if err != nil {
			return err
		}
		right[0] += int64(correct)
	}
	if err := g.AllReduce(ctx, tensor.Of(right), tensor.Sum).Wait(); err != nil {
		return err
	}
	if g.Rank() == 0 {
		fmt.Fprintf(out, "test accuracy %.2f %%\n", 100*float64(right[0])/float64(set.Len()))
	}
	return nil
}
