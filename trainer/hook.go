package trainer

import (
	"context"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// A Hook takes the place of a DDP's all-reduce, as torch's communication hooks do:
// to send fewer bytes, for the most part. It may keep a state from step to step.
//
// Reduce begins to turn b.Data into its sum over the ranks of g, or what is to
// stand for it, and returns without waiting. What is in it has its weight already,
// so nothing is divided. When the Pending has ended without an error, b.Data holds
// the same bits on every rank: that is what keeps replicas alike. Buckets come in
// the same order on all ranks, so a hook may use the group, in that order.
//
// An error, of the Pending, comes out of the DDP's Wait on this rank, and by the
// world's end on the others. After one that is there at once no further bucket is sent.
type Hook interface {
	Reduce(ctx context.Context, g *ops.Group, b Bucket) Pending
}

// HookFunc is a function as a Hook without a state.
type HookFunc func(ctx context.Context, g *ops.Group, b Bucket) Pending

// Reduce calls f.
func (f HookFunc) Reduce(ctx context.Context, g *ops.Group, b Bucket) Pending { return f(ctx, g, b) }

// Pending is what has begun and will end: an *ops.Work, a Later, or several of them, which a
// method Unwrap() []Pending shows. Wait may be called more than once.
type Pending interface{ Wait() error }

// A Bucket is gradients that travel together.
type Bucket struct {
	Index  int           // from 0; buckets are made anew after the first step
	Last   bool          // no other follows in this step
	Data   tensor.Tensor // all of them, of one type
	Params []*Param      // whose they are
	Parts  []tensor.Tensor
}

// publicBucket is bucket k of so many as a hook sees it: members are the parameters whose
// gradients lie in its data, each at its place.
func publicBucket(k, of int, data tensor.Tensor, members []int, params []*Param, at []place) Bucket {
	p := Bucket{Index: k, Last: k == of-1, Data: data}
	for _, i := range members {
		p.Params = append(p.Params, params[i])
		part, err := data.Slice(at[i].lo, at[i].hi).Reshape(params[i].Grad.Shape()...)
		if err != nil {
			panic("trainer: " + err.Error()) // the place was made for it
		}
		p.Parts = append(p.Parts, part)
	}
	return p
}

// Later is a Pending that goes on when another has ended: then runs, once, in the
// goroutine that waits first, which for a DDP's is the only one.
type Later struct {
	First Pending
	Then  func() error

	ended bool
	err   error
}

// Wait waits for First and then runs Then.
func (l *Later) Wait() error {
	if !l.ended {
		l.ended = true
		if l.err = l.First.Wait(); l.err == nil {
			l.err = l.Then()
		}
	}
	return l.err
}

// Failed is a Pending that has ended with an error.
func Failed(err error) Pending { return failure{err} }

type failure struct{ err error }

func (f failure) Wait() error { return f.err }

// stillborn is the error of a Pending that has ended with one before it was returned. It has
// no place in the group's order, as the others' has: what came behind it would meet theirs, and
// every rank would be told of that rather than of the error. One that is several says so by a
// method Unwrap() []Pending, as errors do.
func stillborn(p Pending) error {
	switch p := p.(type) {
	case interface{ Unwrap() []Pending }:
		for _, p := range p.Unwrap() {
			if err := stillborn(p); err != nil {
				return err
			}
		}
	case failure:
		return p.err
	case *Later:
		return stillborn(p.First)
	case *ops.Work:
		select {
		case <-p.Done():
			return p.Wait()
		default:
		}
	}
	return nil
}

// Float16 is a hook that sends gradients as float16, in half the bytes of float32:
// torch's fp16_compress_hook. Sums are rounded to float16 on their way, and what
// is beyond 65504 becomes infinite: scale the loss, see [Scaler].
var Float16 Hook = HookFunc(cast(tensor.ToF16))

// BFloat16 is a hook that sends gradients as bfloat16: torch's bf16_compress_hook.
// It has the range of float32 and 8 bits of precision.
var BFloat16 Hook = HookFunc(cast(tensor.ToBF16))

type half interface {
	tensor.F16 | tensor.BF16
	Float32() float32
}

// cast sends a bucket in a shorter type.
func cast[T half](shorten func(float32) T) func(context.Context, *ops.Group, Bucket) Pending {
	return func(ctx context.Context, g *ops.Group, b Bucket) Pending {
		short := make([]T, b.Data.Len())
		single, double := data[float32](b.Data), data[float64](b.Data) // one is nil
		for i, v := range single {
			short[i] = shorten(v)
		}
		for i, v := range double {
			short[i] = shorten(float32(v))
		}
		return &Later{First: g.AllReduce(ctx, tensor.Of(short), tensor.Sum), Then: func() error {
			for i := range single {
				single[i] = short[i].Float32()
			}
			for i := range double {
				double[i] = float64(short[i].Float32())
			}
			return nil
		}}
	}
}
