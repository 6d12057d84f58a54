package convnet

import (
	"context"
	"errors"
	"fmt"

	"peermesh/gpu"
	"peermesh/trainer/nn"
)

// evalBatch is how many samples Evaluate takes at once.
const evalBatch = 128

// ForwardBackward leaves the gradients of the batch's mean loss in the parameters' Grad, on
// the device, and returns that loss. It calls ready(i), from the calling goroutine, as soon
// as the work is queued that makes Params()[i].Grad final: who reads the gradient then waits
// for it. It returns when the loss is known, while the device is still at work backward. It
// looks at ctx between layers; after an error the gradients are unspecified.
func (n *Net) ForwardBackward(ctx context.Context, b nn.Batch, ready func(i int)) (loss float64, err error) {
	samples := len(b.Y)
	if samples > nn.MaxBatch {
		return 0, fmt.Errorf("convnet: a batch of %d samples, want at most %d to train", samples, nn.MaxBatch)
	}
	if err := errors.Join(check(b), n.bound()); err != nil {
		return 0, err
	}
	if err := n.reserve(samples); err != nil {
		return 0, err
	}
	key := draw(n.drops, n.step)
	n.step++
	in := n.feed.put(n.program, b, shards(samples))
	defer func() {
		e := errors.Join(n.s.Record(in.used), n.values.After(n.s))
		if err == nil && e != nil {
			loss, err = 0, fmt.Errorf("convnet: %w", e)
		}
	}()
	if err := n.forward(ctx, in.dx, samples, n.dropping, key); err != nil {
		return 0, err
	}
	in.score(n.program, n.stages[len(n.stages)-1], samples)
	if n.begun != nil {
		n.begun()
	}
	if err := n.backward(ctx, in.dx, samples, ready); err != nil {
		return 0, err
	}
	loss, _, err = in.collect(samples)
	if err != nil {
		return 0, fmt.Errorf("convnet: %w", err)
	}
	return loss / float64(samples), nil
}

// forward queues the stages. Without dropout key does not count.
func (n *Net) forward(ctx context.Context, x *gpu.Memory, samples int, dropping bool, key uint64) error {
	for i, s := range n.stages {
		if ctx.Err() != nil {
			return errors.Join(fmt.Errorf("convnet: forward: %w", context.Cause(ctx)), n.end())
		}
		s.forward(n.program, x, samples, dropping, draw(key, uint64(i)))
		x = s.y
	}
	if err := n.end(); err != nil {
		return fmt.Errorf("convnet: forward: %w", err)
	}
	return nil
}

// backward queues the stages' gradients, the last stage's first, and tells of each stage.
func (n *Net) backward(ctx context.Context, input *gpu.Memory, samples int, ready func(i int)) error {
	for i := len(n.stages) - 1; i >= 0; i-- {
		if ctx.Err() != nil {
			return errors.Join(fmt.Errorf("convnet: backward: %w", context.Cause(ctx)), n.end())
		}
		s, x := n.stages[i], input
		if i > 0 {
			x = n.stages[i-1].y
		}
		s.learn(n.program, x, n.parts, samples, shards(samples), n.dropping)
		n.try(func() error { return s.grads.After(n.s) })
		if i > 0 { // before ready, which may wait for what precedes it: so the device has work
			s.back(n.program, n.stages[i-1].dy, samples)
		}
		if err := n.end(); err != nil {
			return fmt.Errorf("convnet: backward: %w", err)
		}
		if ready != nil {
			ready(2*i + 1)
			ready(2 * i)
		}
	}
	return nil
}

// Prefetch sets out with the batch that the next ForwardBackward will be given, and does not
// wait: it is copied while the device is at work backward and while gradients travel. So it
// comes between ForwardBackward and the wait for all ranks. The batch may be changed when it
// returns. Another batch may be trained on all the same, which is then copied in its turn;
// and one that is larger than all before it is left for its step, which makes room.
func (n *Net) Prefetch(b nn.Batch) error {
	if err := check(b); err != nil {
		return err
	}
	if len(b.Y) > n.most {
		return nil
	}
	if err := n.feed.fill(b, shards(len(b.Y))); err != nil {
		return fmt.Errorf("convnet: the next batch: %w", err)
	}
	return nil
}

// Evaluate returns the mean loss of a batch of any size and how many of its labels the
// network gets right, without dropout. Gradients, and the random numbers of later steps, stay
// as they are. A part of the batch is copied while the one before is computed.
func (n *Net) Evaluate(ctx context.Context, b nn.Batch) (loss float64, correct int, err error) {
	if err := check(b); err != nil {
		return 0, 0, err
	}
	if err := n.reserve(min(len(b.Y), evalBatch)); err != nil {
		return 0, 0, err
	}
	var before *slot // whose scores are on their way
	var size int     // its samples
	collect := func() error {
		if before == nil {
			return nil
		}
		l, c, err := before.collect(size)
		loss, correct = loss+l, correct+c
		if err != nil {
			return fmt.Errorf("convnet: %w", err)
		}
		return nil
	}
	for lo := 0; lo < len(b.Y); lo += evalBatch {
		hi := min(lo+evalBatch, len(b.Y))
		in := n.feed.put(n.program, nn.Batch{X: b.X[lo*pixels : hi*pixels], Y: b.Y[lo:hi]}, 1)
		err := n.forward(ctx, in.dx, hi-lo, false, 0)
		if err == nil {
			in.score(n.program, n.stages[len(n.stages)-1], hi-lo)
			err = n.end()
		}
		if err := errors.Join(err, n.s.Record(in.used), collect()); err != nil {
			return 0, 0, err
		}
		before, size = in, hi-lo
	}
	if err := errors.Join(collect(), n.values.After(n.s)); err != nil {
		return 0, 0, err
	}
	return loss / float64(len(b.Y)), correct, nil
}

// check is whether every sample has its pixels and a label that is one.
func check(b nn.Batch) error {
	if len(b.Y) == 0 {
		return errors.New("convnet: a batch of no samples")
	}
	if len(b.X) != len(b.Y)*pixels {
		return fmt.Errorf("convnet: a batch of %d labels has %d pixels, want %d each", len(b.Y), len(b.X), pixels)
	}
	for i, y := range b.Y {
		if y >= nn.Classes {
			return fmt.Errorf("convnet: sample %d has label %d, want at most %d", i, y, nn.Classes-1)
		}
	}
	return nil
}

// bound is whether the gradients are where kernels find them.
func (n *Net) bound() error {
	for _, p := range n.params {
		if _, ok := at(p.Grad); !ok || p.Grad.Len() != p.Value.Len() {
			return fmt.Errorf("convnet: the gradient of %s has become %v, or left the device", p.Name, p.Grad)
		}
	}
	return nil
}
