package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/local"
	"peermesh/trainer/mnist"
	"peermesh/trainer/nn"
)

// An outcome is a contender's line of the table, as rank 0 has it.
type outcome struct {
	steps    int
	sent     int64         // bytes of a rank, the mean of all
	took     time.Duration // without tests
	waited   time.Duration // of it, for others
	accuracy float64
	hit      time.Duration // when the target was reached; zero: not
	hitSteps int
}

// A run is one rank's training.
type run struct {
	options
	contender
	g    *ops.Group
	sent func() int64 // by this rank so far
	data *mnist.Data

	kind       network
	net, probe *nn.Net // the model, and another that takes the place of it in tests
	common     []*trainer.Param
	inner      trainer.Optimizer
	ddp        *trainer.DDP   // or
	replica    *local.Replica // one of them
	batch      nn.Batch
	waited     time.Duration
}

// train trains one rank of a group by a method. All ranks get one outcome.
func train(ctx context.Context, g *ops.Group, sent func() int64, data *mnist.Data, c contender, o options) (outcome, error) {
	r := &run{options: o, contender: c, g: g, sent: sent, data: data}
	if err := r.prepare(ctx); err != nil {
		return outcome{}, err
	}
	sampler, err := trainer.NewDistributedSampler(data.Train.Len(), g.Size(), g.Rank(),
		trainer.SamplerConfig{Shuffle: true, Seed: o.seed, DropLast: true})
	if err != nil {
		return outcome{}, err
	}
	var out outcome
	before := sent()
	begin := time.Now()
	for epoch := range o.epochs {
		sampler.SetEpoch(epoch)
		for indices := range trainer.Batches(sampler.Indices(), o.batch/g.Size(), true) {
			if o.steps > 0 && out.steps == o.steps || out.hit > 0 {
				break
			}
			out.steps++
			r.fill(data.Train, indices)
			r.net.SetStep(int64(out.steps))
			if err := r.step(ctx); err != nil {
				return out, fmt.Errorf("step %d: %w", out.steps, err)
			}
			if o.look > 0 && out.steps%o.look == 0 {
				if err := r.settle(); err != nil {
					return out, fmt.Errorf("step %d: %w", out.steps, err)
				}
				spent, own := time.Since(begin), sent()
				if out.accuracy, err = r.test(ctx); err != nil {
					return out, err
				}
				if 100*out.accuracy >= o.target {
					out.hit, out.hitSteps = spent, out.steps
				}
				before += sent() - own
				begin = time.Now().Add(-spent)
			}
		}
	}
	if r.replica != nil {
		err = r.replica.Finish()
	}
	if err := errors.Join(err, r.settle(), g.Barrier(ctx).Wait()); err != nil {
		return out, err
	}
	out.took, out.waited = time.Since(begin), r.waited
	return r.conclude(ctx, out, sent()-before)
}

// conclude adds what all ranks know together.
func (r *run) conclude(ctx context.Context, out outcome, sent int64) (outcome, error) {
	total := []int64{sent}
	if err := r.g.AllReduce(ctx, tensor.Of(total), tensor.Sum).Wait(); err != nil {
		return out, err
	}
	out.sent = total[0] / int64(r.g.Size())
	var err error
	out.accuracy, err = r.test(ctx)
	return out, err
}

func (r *run) prepare(ctx context.Context) (err error) {
	if err := r.g.Measure(ctx); err != nil {
		return err
	}
	if r.kind, err = trained(r.options.net); err != nil {
		return err
	}
	c := nn.Config{Seed: r.seed, Stream: uint64(r.g.Rank()), Threads: r.threads}
	if r.net, err = r.kind.make(c); err != nil {
		return err
	}
	if r.probe, err = r.kind.make(c); err != nil {
		return err
	}
	params := r.net.Params()
	if r.method == nil {
		r.common = params
		return r.prepareDDP(ctx, params)
	}
	if r.inner, err = r.optimizer(params); err != nil {
		return err
	}
	if r.replica, err = local.New(r.method, params); err != nil {
		return err
	}
	r.common = r.replica.State()[:len(params)]
	if _, ok := r.method.(local.PairAveraging); ok {
		r.common = params // whose anchor is old: each rank is judged by its own model
	}
	return r.replica.Begin(ctx, r.g)
}

// bucket is the size at which a DDP's bucket is full: so small that each of the mlp's large
// layers is one, and the last is alone on the link for no more than its own bytes.
const bucket = 4 << 20

// prepareDDP makes a DDP with an optimiser for each parameter, which steps when all gradients
// are there; or, where the DDP is lazy, when the parameter is needed.
func (r *run) prepareDDP(ctx context.Context, params []*trainer.Param) error {
	hook, err := r.hook(params)
	if err != nil {
		return err
	}
	c := trainer.DDPConfig{Hook: hook, Abreast: true, Views: true, Bucket: bucket}
	if r.lazy {
		each := make([]trainer.Optimizer, len(params))
		for i := range each {
			if each[i], err = r.optimizer(params[i : i+1]); err != nil {
				return err
			}
		}
		c.Update = func(i int) error { return each[i].Step() }
		r.net.BeforeUse(func(i int) error { return r.wait(func() error { return r.ddp.Need(i) }) })
	} else if r.inner, err = r.optimizer(params); err != nil {
		return err
	}
	r.ddp, err = trainer.NewDDP(ctx, r.g, params, c)
	return err
}

// optimizer is the network's, for a run as long as this one.
func (r *run) optimizer(params []*trainer.Param) (trainer.Optimizer, error) {
	return r.kind.optimizer(params, r.total(r.data.Train))
}

// wait counts what f takes.
func (r *run) wait(f func() error) error {
	begin := time.Now()
	err := f()
	r.waited += time.Since(begin)
	return err
}

// settle ends the last step of a DDP that is lazy.
func (r *run) settle() error {
	if !r.lazy {
		return nil
	}
	return r.wait(r.ddp.Wait)
}

// step takes one step on the batch.
func (r *run) step(ctx context.Context) error {
	if r.ddp != nil {
		if _, err := r.net.ForwardBackward(ctx, r.batch, r.ddp.Ready); err != nil || r.lazy {
			return err
		}
		if err := r.wait(r.ddp.Wait); err != nil {
			return err
		}
		return r.inner.Step()
	}
	if _, err := r.net.ForwardBackward(ctx, r.batch, nil); err != nil {
		return err
	}
	if err := r.inner.Step(); err != nil {
		return err
	}
	return r.wait(r.replica.Step)
}

// test is the share of the test set that the common model gets right, of which each rank
// looks at a part.
func (r *run) test(ctx context.Context) (float64, error) {
	for i, p := range r.probe.Params() {
		if err := tensor.Copy(p.Value, r.common[i].Value); err != nil {
			return 0, err
		}
	}
	sampler, err := trainer.NewEvalSampler(r.data.Test.Len(), r.g.Size(), r.g.Rank())
	if err != nil {
		return 0, err
	}
	sum := []int64{0}
	for indices := range trainer.Batches(sampler.Indices(), 250, false) {
		r.fill(r.data.Test, indices)
		_, right, err := r.probe.Evaluate(ctx, r.batch)
		if err != nil {
			return 0, err
		}
		sum[0] += int64(right)
	}
	err = r.g.AllReduce(ctx, tensor.Of(sum), tensor.Sum).Wait()
	return float64(sum[0]) / float64(r.data.Test.Len()), err
}

func (r *run) fill(s *mnist.Set, indices []int) {
	n := len(indices)
	if cap(r.batch.Y) < n {
		r.batch = nn.Batch{X: make([]float32, n*mnist.Pixels), Y: make([]uint8, n)}
	}
	r.batch.X, r.batch.Y = r.batch.X[:n*mnist.Pixels], r.batch.Y[:n]
	s.Fill(r.batch.X, r.batch.Y, indices, 0.1302, 0.3069)
}
