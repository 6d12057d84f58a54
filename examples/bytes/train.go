package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/nn/layers"
	"peermesh/trainer/safetensors"
)

type options struct {
	steps, batch, context, width, blocks, threads int
	rate                                          float64
	tied                                          bool
	every                                         int // steps between two reports
	save                                          string
	log                                           func(format string, args ...any)
}

// A run is what a rank trains with.
type run struct {
	options
	g        *ops.Group
	net      *layers.Net
	ddp      *trainer.DDP
	adam     *trainer.AdamW
	schedule *trainer.Schedule
	windows  windows
}

// train trains one rank of a group, and returns the network and what all ranks
// together score on the text that was held back.
func train(ctx context.Context, g *ops.Group, c corpus, o options) (*layers.Net, layers.Score, error) {
	if len(c.train) <= o.context || len(c.valid) <= o.context {
		return nil, layers.Score{}, fmt.Errorf("%d and %d bytes of text: want more than a context, %d", len(c.train), len(c.valid), o.context)
	}
	r, err := prepare(ctx, g, o)
	if err != nil {
		return nil, layers.Score{}, err
	}
	part, sum := o.batch/g.Size(), 0.0
	for step := range o.steps {
		loss, err := r.step(ctx, r.windows.random(c.train, step, part*g.Rank(), part*(g.Rank()+1)))
		if err != nil {
			return nil, layers.Score{}, err
		}
		sum += loss
		if (step+1)%o.every == 0 && g.Rank() == 0 {
			o.log("step %d: %.3f bits per byte", step+1, sum/float64(o.every)/math.Ln2)
			sum = 0
		}
	}
	score, err := r.test(ctx, c.valid)
	if err != nil {
		return nil, score, err
	}
	return r.net, score, r.keep()
}

func prepare(ctx context.Context, g *ops.Group, o options) (*run, error) {
	if o.batch < g.Size() || o.batch%g.Size() != 0 {
		return nil, fmt.Errorf("a batch of %d for %d ranks: want a multiple", o.batch, g.Size())
	}
	r := &run{options: o, g: g, windows: windows{context: o.context}}
	model, err := layers.NewTransformer(layers.TransformerConfig{Width: o.width, Blocks: o.blocks, Tied: o.tied})
	if err != nil {
		return nil, err
	}
	c := layers.Config{Seed: 1, Stream: uint64(g.Rank()), Threads: o.threads}
	if r.net, err = layers.New(c, layers.Shape{o.context}, model, &layers.CrossEntropy{}); err != nil {
		return nil, err
	}
	if r.ddp, err = trainer.NewDDP(ctx, g, r.net.Params(), trainer.DDPConfig{Views: true}); err != nil {
		return nil, err
	}
	if r.adam, err = trainer.NewAdamW(r.net.Params(), trainer.AdamWConfig{LR: o.rate, Beta2: 0.99, WeightDecay: 0.1}); err != nil {
		return nil, err
	}
	warm := max(1, o.steps/20)
	curve := trainer.Warmup{Steps: warm, Start: 0.01, Then: trainer.CosineAnnealing{Steps: max(1, o.steps-warm), Min: o.rate / 10}}
	r.schedule, err = trainer.NewSchedule(r.adam, curve)
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
	if _, err := trainer.ClipGradNorm(r.net.Params(), 1); err != nil {
		return 0, err
	}
	if err := r.adam.Step(); err != nil {
		return 0, err
	}
	r.schedule.Step()
	return loss, nil
}

// testWindows bounds the windows that are tested.
const testWindows = 1024

// test counts each window of a text on one rank, and adds up over the ranks.
func (r *run) test(ctx context.Context, text []byte) (layers.Score, error) {
	n := min(testWindows, (len(text)-1)/r.context)
	sampler, err := trainer.NewEvalSampler(n, r.g.Size(), r.g.Rank())
	if err != nil {
		return layers.Score{}, err
	}
	var own layers.Score
	for numbers := range trainer.Batches(sampler.Indices(), r.batch, false) {
		score, err := r.net.Evaluate(ctx, r.windows.at(text, numbers))
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
