package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"peermesh/gpu"
	"peermesh/gpu/convnet"
	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/nn"
)

const (
	// trainStep is the training of a check.
	trainStep = "training"
	// trainWithin bounds it.
	trainWithin = 40 * time.Second
	// trainNear is how far a number may be from the host's, as a share of the largest: the
	// host may fuse what the device does not.
	trainNear = 1e-5
)

// trainBatches are the samples of the steps of a check: several shards, and one.
var trainBatches = []int{16, 3}

// train has the device take steps of training, and compares them with the host's.
func (g *gpuCheckCmd) train(ctx context.Context, opened bool) gpu.Verdict {
	v, begin := gpu.Verdict{Step: trainStep}, time.Now()
	if !opened {
		v.Err = fmt.Errorf("%w: the device does not open", gpu.ErrNotTried)
		return v
	}
	ctx, cancel := context.WithTimeoutCause(ctx, trainWithin, fmt.Errorf("not within %v", trainWithin))
	defer cancel()
	ended := make(chan gpu.Verdict, 1)
	go func() {
		note, err := trainOn(ctx, g.Device)
		ended <- gpu.Verdict{Step: trainStep, Note: note, Err: err}
	}()
	select { // a call that never returns keeps its goroutine
	case v = <-ended:
	case <-ctx.Done():
		v.Err = context.Cause(ctx)
	}
	v.Took = time.Since(begin)
	return v
}

// trainOn takes the steps on a device and on the host side by side.
func trainOn(ctx context.Context, ordinal int) (note string, err error) {
	d, err := gpu.Open(gpu.Config{Ordinal: ordinal})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	config := nn.Config{Seed: 1, Portable: true}
	device, err := convnet.New(d, config)
	if err != nil {
		return "", err
	}
	host, err := nn.NewConvNet(config)
	if err != nil {
		return "", err
	}
	there, e1 := device.Adadelta(trainer.AdadeltaConfig{LR: 0.5})
	here, e2 := trainer.NewAdadelta(host.Params(), trainer.AdadeltaConfig{LR: 0.5})
	if err := errors.Join(e1, e2); err != nil {
		return "", err
	}
	worst := 0.0
	for step, n := range trainBatches {
		b := noise(n, uint64(step))
		x, e1 := device.ForwardBackward(ctx, b, nil)
		y, e2 := host.ForwardBackward(ctx, b, nil)
		grads, e3 := furthest(device.Params(), host.Params(), gradient)
		if err := errors.Join(e1, e2, e3, there.Step(), here.Step()); err != nil {
			return "", err
		}
		values, err := furthest(device.Params(), host.Params(), value)
		if err != nil {
			return "", err
		}
		worst = max(worst, grads, values, math.Abs(x-y)/y)
		if !(worst <= trainNear) { // so put, a NaN is too far
			return "", fmt.Errorf("step %d: the loss is %v on the device and %v on the host; gradients are off by %.2g, parameters by %.2g", step+1, x, y, grads, values)
		}
	}
	return fmt.Sprintf("%d steps of the ConvNet as on the host, off by at most %.2g", len(trainBatches), worst), nil
}

// noise is a batch of random pixels and labels.
func noise(n int, seed uint64) nn.Batch {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := nn.Batch{X: make([]float32, n*nn.Side*nn.Side), Y: make([]uint8, n)}
	for i := range b.X {
		b.X[i] = float32(rng.NormFloat64())
	}
	for i := range b.Y {
		b.Y[i] = uint8(rng.IntN(nn.Classes))
	}
	return b
}

// furthest is how far a device's tensors are from the host's at most, as a share of the largest
// element of each. pick is which of a parameter's.
func furthest(device, host []*trainer.Param, pick func(p *trainer.Param) tensor.Tensor) (share float64, err error) {
	for i, p := range host {
		got, want := make([]float32, p.Value.Len()), make([]float32, p.Value.Len())
		if err := errors.Join(tensor.Copy(tensor.Of(got), pick(device[i])), tensor.Copy(tensor.Of(want), pick(p))); err != nil {
			return 0, fmt.Errorf("%s: %w", p.Name, err)
		}
		largest, off := 0.0, 0.0
		for j, w := range want {
			largest, off = max(largest, math.Abs(float64(w))), max(off, math.Abs(float64(got[j]-w)))
		}
		share = max(share, off/max(largest, math.SmallestNonzeroFloat32))
	}
	return share, nil
}

func gradient(p *trainer.Param) tensor.Tensor { return p.Grad }
func value(p *trainer.Param) tensor.Tensor    { return p.Value }
