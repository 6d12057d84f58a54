package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/mnist"
	"peermesh/trainer/nn/layers"
	"peermesh/trainer/safetensors"
)

type options struct {
	epochs, steps, batch, blocks, threads int
	rate                                  float64
	width                                 int // of the network; zero: as published
	save                                  string
	log                                   func(format string, args ...any)
}

// A run is what a rank trains with.
type run struct {
	options
	g        *ops.Group
	net      *layers.Net
	ddp      *trainer.DDP
	sgd      *trainer.SGD
	schedule *trainer.Schedule
	sampler  *trainer.DistributedSampler
	total    int // steps
}

// train trains one rank of a group and returns what all ranks together score on the
// test set.
func train(ctx context.Context, g *ops.Group, data *mnist.Data, o options) (layers.Score, error) {
	r, err := prepare(ctx, g, data.Train.Len(), o)
	if err != nil {
		return layers.Score{}, err
	}
	step, f := 0, new(filler)
	for epoch := 0; step < r.total; epoch++ {
		r.sampler.SetEpoch(epoch)
		sum, first := 0.0, step
		for indices := range trainer.Batches(r.sampler.Indices(), o.batch/g.Size(), true) {
			loss, err := r.step(ctx, f.fill(data.Train, indices))
			if err != nil {
				return layers.Score{}, err
			}
			sum += loss
			if step++; step == r.total {
				break
			}
		}
		score, err := r.test(ctx, data.Test, f)
		if err != nil {
			return score, err
		}
		if g.Rank() == 0 {
			o.log("step %d: loss %.4f, test loss %.4f, accuracy %.2f %%", step, sum/float64(step-first), score.Mean(), 100*score.Accuracy())
		}
		if step == r.total {
			return score, r.keep()
		}
	}
	return layers.Score{}, errors.New("nothing to train")
}

func prepare(ctx context.Context, g *ops.Group, samples int, o options) (*run, error) {
	if o.batch < g.Size() || o.batch%g.Size() != 0 {
		return nil, fmt.Errorf("a batch of %d for %d ranks: want a multiple", o.batch, g.Size())
	}
	r := &run{options: o, g: g, total: o.epochs * (samples / o.batch)}
	if o.steps > 0 {
		r.total = min(r.total, o.steps)
	}
	resnet, err := layers.NewResNet(layers.ResNetConfig{Blocks: o.blocks, Width: o.width, Classes: mnist.Classes})
	if err != nil {
		return nil, err
	}
	c := layers.Config{Seed: 1, Threads: o.threads}
	if r.net, err = layers.New(c, layers.Shape{1, mnist.Side, mnist.Side}, resnet, &layers.CrossEntropy{}); err != nil {
		return nil, err
	}
	// Batch norms have a group of their own, lest they wait behind gradients.
	own, err := g.Split(ctx, g.Ranks())
	if err != nil {
		return nil, err
	}
	r.net.Synchronize(own)
	if r.ddp, err = trainer.NewDDP(ctx, g, r.net.Params(), trainer.DDPConfig{Views: true, Buffers: r.net.Buffers()}); err != nil {
		return nil, err
	}
	sgd := trainer.SGDConfig{LR: o.rate, Momentum: 0.9, WeightDecay: 5e-4, Nesterov: true}
	if r.sgd, err = trainer.NewSGD(r.net.Params(), sgd); err != nil {
		return nil, err
	}
	if r.schedule, err = trainer.NewSchedule(r.sgd, trainer.OneCycle{Steps: r.total, KeepMomentum: true}); err != nil {
		return nil, err
	}
	deal := trainer.SamplerConfig{Shuffle: true, Seed: 1, DropLast: true}
	r.sampler, err = trainer.NewDistributedSampler(samples, g.Size(), g.Rank(), deal)
	return r, err
}

// step takes one step on this rank's part of a batch and returns its loss.
func (r *run) step(ctx context.Context, b layers.Batch) (float64, error) {
	loss, err := r.net.ForwardBackward(ctx, b, r.ddp.Ready)
	if err != nil {
		return 0, err
	}
	if err := r.ddp.Wait(); err != nil {
		return 0, err
	}
	if err := r.sgd.Step(); err != nil {
		return 0, err
	}
	r.schedule.Step()
	return loss, nil
}

// test counts each test image on one rank, and adds up over the ranks.
func (r *run) test(ctx context.Context, s *mnist.Set, f *filler) (layers.Score, error) {
	sampler, err := trainer.NewEvalSampler(s.Len(), r.g.Size(), r.g.Rank())
	if err != nil {
		return layers.Score{}, err
	}
	var own layers.Score
	for indices := range trainer.Batches(sampler.Indices(), r.batch, false) {
		score, err := r.net.Evaluate(ctx, f.fill(s, indices))
		if err != nil {
			return own, err
		}
		own = own.Plus(score)
	}
	all := []float64{own.Sum, float64(own.Count), float64(own.Right)}
	if err := r.g.AllReduce(ctx, tensor.Of(all), tensor.Sum).Wait(); err != nil {
		return own, err
	}
	return layers.Score{Sum: all[0], Count: int(all[1]), Right: int(all[2])}, nil
}

// keep saves the model where PyTorch, or another run, can load it.
func (r *run) keep() error {
	if r.save == "" || r.g.Rank() != 0 {
		return nil
	}
	state := slices.Concat(r.net.Params(), r.net.Buffers())
	return safetensors.Save(r.save, state, safetensors.Options{Metadata: map[string]string{"format": "pt"}})
}
