package trainer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// DDPConfig sets up a DDP. The zero value is PyTorch's.
type DDPConfig struct {
	// FirstBucket is the size in bytes at which the first bucket is full; zero is
	// DefaultFirstBucket.
	FirstBucket int
	// Bucket is that of the others; zero is DefaultBucket. Both must be the same
	// on every rank.
	Bucket int
}

// A DDP averages gradients over the ranks of a group while backward is still at
// work: PyTorch's DistributedDataParallel (Li et al., "PyTorch Distributed",
// VLDB 2020), for any [Model].
//
// Gradients travel in buckets. A gradient is multiplied by 1/ranks as it is
// copied into its bucket, and then summed, as PyTorch does. Buckets are reduced
// in one order on every rank: one that is ready early waits for those before it.
//
// Ready and Wait belong to the goroutine that computes.
type DDP struct {
	ctx     context.Context
	g       *ops.Group
	params  []*Param
	buckets []*flight
	of      []int // bucket of a parameter, −1 for none

	launched int // buckets whose all-reduce has begun
	seen     []bool
	weight   float64 // of this rank's gradients in the average, in this step
	err      error   // the first of this step
}

// A flight is a bucket on its way.
type flight struct {
	bucket
	flat    tensor.Tensor
	missing int
	work    *ops.Work
}

// NewDDP checks that every rank has the same parameters and gives all of them
// rank 0's values. Every rank of the group calls it, at the same place among the
// group's operations. ctx bounds the construction and every step after it.
//
// Gradients are float32 or float64 in host memory.
func NewDDP(ctx context.Context, g *ops.Group, params []*Param, c DDPConfig) (*DDP, error) {
	if c.FirstBucket < 0 || c.Bucket < 0 {
		return nil, fmt.Errorf("trainer: DDPConfig: bucket sizes %d and %d: want bytes, or zero for the default", c.FirstBucket, c.Bucket)
	}
	if c.FirstBucket == 0 {
		c.FirstBucket = DefaultFirstBucket
	}
	if c.Bucket == 0 {
		c.Bucket = DefaultBucket
	}
	own := averageable(params)
	if err := verify(ctx, g, params, own); err != nil {
		return nil, err
	}
	if err := broadcast(ctx, g, params); err != nil {
		return nil, err
	}
	d := &DDP{ctx: ctx, g: g, params: params, of: make([]int, len(params)), seen: make([]bool, len(params))}
	for i := range d.of {
		d.of[i] = -1
	}
	for i, b := range assign(params, c.FirstBucket, c.Bucket) {
		d.buckets = append(d.buckets, &flight{bucket: b, flat: tensor.New(b.dtype, b.len)})
		for _, p := range b.params {
			d.of[p] = i
		}
	}
	d.reset()
	return d, nil
}

// averageable refuses gradients that a DDP cannot scale.
func averageable(params []*Param) error {
	for _, p := range params {
		_, f32 := tensor.Data[float32](p.Grad)
		_, f64 := tensor.Data[float64](p.Grad)
		switch {
		case p.Grad.Memory() == nil:
		case !f32 && !f64:
			return fmt.Errorf("trainer: gradient of %q is %v: want float32 or float64 in host memory", p.Name, p.Grad)
		case p.Grad.Len() != p.Value.Len():
			return fmt.Errorf("trainer: gradient of %q is %v, its value %v: want one shape", p.Name, p.Grad, p.Value)
		}
	}
	return nil
}

// broadcast gives every rank the values of rank 0.
func broadcast(ctx context.Context, g *ops.Group, params []*Param) error {
	var works []*ops.Work
	for _, p := range params {
		works = append(works, g.Broadcast(ctx, p.Value, 0))
	}
	for i, w := range works {
		if err := w.Wait(); err != nil {
			return fmt.Errorf("trainer: broadcast of %q: %w", params[i].Name, err)
		}
	}
	return nil
}

// Ready says that the gradient of parameter i is final; give it to
// Model.ForwardBackward. What goes wrong here comes out of Wait.
func (d *DDP) Ready(i int) {
	switch {
	case d.err != nil:
		return
	case i < 0 || i >= len(d.params):
		d.err = fmt.Errorf("trainer: gradient %d is ready, there are %d parameters", i, len(d.params))
		return
	case d.seen[i]:
		d.err = fmt.Errorf("trainer: gradient of %q is ready twice in one step", d.params[i].Name)
		return
	case d.of[i] < 0:
		return
	}
	d.seen[i] = true
	b := d.buckets[d.of[i]]
	copyScaled(b.slot(d.params, i), d.params[i].Grad, d.weight)
	b.missing--
	for d.launched < len(d.buckets) && d.buckets[d.launched].missing == 0 {
		next := d.buckets[d.launched]
		next.work = d.g.AllReduce(d.ctx, next.flat, tensor.Sum)
		d.launched++
	}
}

// Weigh says what this rank's gradients count for in the step that begins, rather
// than one part in as many as there are ranks. Where batches differ in length it
// is [Share.Weight]: the weights of all ranks add up to 1.
func (d *DDP) Weigh(weight float64) { d.weight = weight }

// Idle takes this rank's part in a step for which it has no samples: all its
// gradients become zero and ready. Wait follows.
func (d *DDP) Idle() {
	for i := len(d.params) - 1; i >= 0; i-- {
		if d.of[i] >= 0 {
			clear(data[float32](d.params[i].Grad)) // one of them is nil
			clear(data[float64](d.params[i].Grad))
			d.Ready(i)
		}
	}
}

// Wait ends a step: when it returns nil, every rank's gradients are the average
// over all ranks, bit for bit the same. A parameter whose gradient was not ready
// is an error that names it. After an error the ranks have parted ways: give it
// to the world's End, so that the others learn it rather than wait.
func (d *DDP) Wait() error {
	defer d.reset()
	err := errors.Join(d.err, d.unused())
	for _, b := range d.buckets[:d.launched] {
		if e := b.work.Wait(); e != nil {
			err = errors.Join(err, fmt.Errorf("trainer: averaging gradients: %w", e))
			continue
		}
		for _, i := range b.params {
			copyScaled(d.params[i].Grad, b.slot(d.params, i), 1)
		}
	}
	return err
}

func (d *DDP) unused() error {
	if d.err != nil || d.launched == len(d.buckets) {
		return nil
	}
	var names []string
	for i, p := range d.params {
		if d.of[i] >= 0 && !d.seen[i] {
			names = append(names, p.Name)
		}
	}
	return fmt.Errorf("trainer: no gradient was ready in this step for %s: every parameter must take part in the loss", strings.Join(names, ", "))
}

func (d *DDP) reset() {
	for _, b := range d.buckets {
		b.missing, b.work = len(b.params), nil
	}
	clear(d.seen)
	d.launched, d.weight, d.err = 0, 1/float64(d.g.Size()), nil
}

// slot is where parameter i lies in the bucket.
func (b *flight) slot(params []*Param, i int) tensor.Tensor {
	at := 0
	for _, p := range b.params {
		n := params[p].Grad.Len()
		if p == i {
			return b.flat.Slice(at, at+n)
		}
		at += n
	}
	panic(fmt.Sprintf("trainer: parameter %d is not in this bucket", i))
}

// copyScaled sets dst to src times a factor, in the element type's arithmetic.
func copyScaled(dst, src tensor.Tensor, factor float64) {
	if d, ok := tensor.Data[float32](dst); ok {
		s, _ := tensor.Data[float32](src)
		scaled(d, s, float32(factor))
		return
	}
	d, _ := tensor.Data[float64](dst)
	s, _ := tensor.Data[float64](src)
	scaled(d, s, factor)
}

func scaled[T float32 | float64](dst, src []T, factor T) {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = v * factor
	}
}
