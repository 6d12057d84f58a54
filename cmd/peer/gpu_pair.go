package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"peermesh/gpu"
	"peermesh/mesh"
	"peermesh/ops"
	"peermesh/ops/tensor"
)

// A gpuPairCmd is one of two processes that share a GPU and all-reduce on it. peer gpu
// check launches it.
type gpuPairCmd struct {
	Joining `embed:""`
	Device  int   `hidden:""`
	Bytes   int64 `hidden:""`
}

const (
	// pairWithin bounds the meeting of the two.
	pairWithin = time.Minute
	// pairRuns are how often each of both paths is timed.
	pairRuns = 5
)

// Run takes part as the launcher's brief says.
func (g *gpuPairCmd) Run(p *process) error {
	tether, brief, err := tie(p)
	if err != nil {
		return err
	}
	if brief.GPUPair == nil {
		return usagef("gpu-pair is for the children of another peer: this one is not told what to do")
	}
	*g = *brief.GPUPair
	common := Common{Mesh: "gpu-check", Wait: pairWithin, LogLevel: "warn"}
	setupLogging(&common, "text")
	e := &entrant{Joining: &g.Joining, Common: &common, transport: "all", tether: tether}
	place, err := e.enter(p.ctx)
	if err != nil {
		return err
	}
	defer place.close()
	w, err := place.mesh.World(p.ctx)
	if err != nil {
		return cause(p.ctx, err)
	}
	r, err := g.on(p.ctx, w)
	if err != nil {
		w.End(err)
		return cause(p.ctx, cause(w.Context(), err))
	}
	if w.Rank() == 0 {
		err = writeJSONLine(p.stdout, r)
	}
	return errors.Join(err, place.leave(p.ctx))
}

// A pairResult is how long an all-reduce takes, in seconds: the median of the runs of rank
// 0, on the device and in the host's memory.
type pairResult struct {
	Bytes  int64
	Device float64
	Host   float64
}

func (r pairResult) String() string {
	return fmt.Sprintf("all_reduce of %v on the device %s, %s of the rate in the host's memory; sums right",
		size(r.Bytes), speed(float64(r.Bytes)/max(r.Device, 1e-9)/1e9), percent(r.Host/max(r.Device, 1e-9)))
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// on all-reduces on a world, both ways in turn.
func (g *gpuPairCmd) on(parent context.Context, w *mesh.World) (r pairResult, err error) {
	defer context.AfterFunc(parent, func() { w.End(context.Cause(parent)) })()
	d, err := gpu.Open(gpu.Config{Ordinal: g.Device})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	n := int(g.Bytes) / tensor.Float32.Size()
	device, err := d.Alloc(tensor.Float32, n)
	if err != nil {
		return r, err
	}
	group, host := ops.NewGroup(w, ops.Config{}), tensor.New(tensor.Float32, n)
	var times [2][]float64
	for range 1 + pairRuns { // the first opens lanes, and does not count
		for k, x := range []tensor.Tensor{device, host} {
			took, err := reducePair(w.Context(), group, x)
			if err != nil {
				return r, err
			}
			times[k] = append(times[k], took.Seconds())
		}
	}
	return pairResult{g.Bytes, summarize(times[0][1:]).median, summarize(times[1][1:]).median}, nil
}

// reducePair sums what two ranks have, which is exact, and compares every element.
func reducePair(ctx context.Context, g *ops.Group, x tensor.Tensor) (time.Duration, error) {
	const cycle = 1 << 16 // sums are exact
	values := make([]float32, x.Len())
	for i := range values {
		values[i] = float32(i%cycle + g.Rank())
	}
	if err := errors.Join(tensor.Copy(x, tensor.Of(values)), g.Barrier(ctx).Wait()); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := g.AllReduce(ctx, x, tensor.Sum).Wait(); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	if err := tensor.Copy(tensor.Of(values), x); err != nil {
		return 0, err
	}
	for i, v := range values {
		if want := float32(2*(i%cycle) + 1); v != want {
			return 0, fmt.Errorf("all_reduce: element %d is %v, want %v", i, v, want)
		}
	}
	return took, nil
}
