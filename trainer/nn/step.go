package nn

import (
	"context"
	"errors"
	"fmt"

	"peermesh/ops/tensor"
)

// evalBatch is how many samples Evaluate takes at once.
const evalBatch = 128

// ForwardBackward leaves the gradients of the batch's mean loss in the
// parameters' Grad and returns that loss. It calls ready(i), from the calling
// goroutine, as soon as Params()[i].Grad is final: the last parameter first, the
// first one last. It looks at ctx between layers; after an error the gradients
// are unspecified. Once it has seen its largest batch, it allocates nothing.
//
// A sample's part in all this does not depend on the samples beside it, except
// that sums over samples are rounded in an order that the batch's size decides.
func (n *Net) ForwardBackward(ctx context.Context, b Batch, ready func(i int)) (float64, error) {
	if len(b.Y) > MaxBatch {
		return 0, fmt.Errorf("nn: a batch of %d samples, want at most %d to train", len(b.Y), MaxBatch)
	}
	if err := n.check(b); err != nil {
		return 0, err
	}
	n.dropout = !n.config.NoDropout
	n.masks = n.drops.At(n.step)
	n.step++
	n.xs, n.ys = grow(n.xs, len(b.X)), grow(n.ys, len(b.Y))
	deal(b, n.pixels, shards(len(b.Y)), n.xs, n.ys)
	b = Batch{X: n.xs, Y: n.ys}
	z, err := n.pass(ctx, b, true)
	if err != nil {
		return 0, err
	}
	if err := n.bind(); err != nil { // not before: forward may have ended the last step
		return 0, err
	}
	top := n.stages[len(n.stages)-1]
	loss, _ := nll(z, b.Y, n.classes, top.dy)
	if n.turned != nil {
		n.turned()
	}
	for n.at = len(n.stages) - 1; n.at >= 0; n.at-- {
		if ctx.Err() != nil {
			return 0, fmt.Errorf("nn: backward: %w", context.Cause(ctx))
		}
		n.crew.Run(n.shards, n.backward)
		n.crew.Run(parts, n.finish)
		if ready != nil {
			ready(2*n.at + 1)
			ready(2 * n.at)
		}
	}
	return loss / float64(n.n), nil
}

// bind looks up where the gradients are now: a DDP may have moved them.
func (n *Net) bind() error {
	for i, s := range n.stages {
		w := s.params()
		for k, grad := range []*[]float32{&w.dval, &w.dbias} {
			p := n.params[2*i+k]
			g, ok := tensor.Data[float32](p.Grad)
			if !ok || len(g) != len(*grad) {
				return fmt.Errorf("nn: the gradient of %s has become %v", p.Name, p.Grad)
			}
			*grad = g
		}
	}
	return nil
}

// Evaluate returns the mean loss of a batch of any size and how many of its
// labels the network gets right. Nothing is dropped out; gradients, and the
// random numbers of later steps, stay as they are.
func (n *Net) Evaluate(ctx context.Context, b Batch) (loss float64, correct int, err error) {
	if err := n.check(b); err != nil {
		return 0, 0, err
	}
	n.dropout = false
	for lo := 0; lo < len(b.Y); lo += evalBatch {
		hi := min(lo+evalBatch, len(b.Y))
		part := Batch{X: b.X[lo*n.pixels : hi*n.pixels], Y: b.Y[lo:hi]}
		z, err := n.pass(ctx, part, false)
		if err != nil {
			return 0, 0, err
		}
		l, c := nll(z, part.Y, n.classes, nil)
		loss, correct = loss+l, correct+c
	}
	return loss / float64(len(b.Y)), correct, nil
}

// pass runs the stages forward and returns the last one's output.
func (n *Net) pass(ctx context.Context, b Batch, train bool) ([]float32, error) {
	n.n = len(b.Y)
	n.shards = shards(n.n)
	x := b.X
	for i, s := range n.stages {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("nn: forward: %w", context.Cause(ctx))
		}
		if train && n.need != nil {
			for _, p := range []int{2 * i, 2*i + 1} {
				if err := n.need(p); err != nil {
					return nil, fmt.Errorf("nn: %s is needed: %w", n.params[p].Name, err)
				}
			}
		}
		x = s.prepare(x, n.n, n.shards, train)
		n.at = i
		n.crew.Run(n.shards, n.forward)
	}
	return x, nil
}

func (n *Net) forwardPart(worker, part int) {
	lo, hi := bounds(n.n, n.shards, part)
	n.stages[n.at].forward(worker, lo, hi, n.dropout, n.masks.At(uint64(n.at)))
}

func (n *Net) backwardPart(worker, part int) {
	lo, hi := bounds(n.n, n.shards, part)
	var dx []float32 // nobody asks for the first stage's
	if n.at > 0 {
		dx = n.stages[n.at-1].dy
	}
	n.stages[n.at].backward(worker, part, lo, hi, dx, n.dropout)
}

func (n *Net) finishPart(worker, part int) {
	s := n.stages[n.at]
	s.finish(worker, part, s.x, s.dy)
}

// check is whether every sample has its pixels and a label that is one.
func (n *Net) check(b Batch) error {
	if len(b.Y) == 0 {
		return errors.New("nn: a batch of no samples")
	}
	if len(b.X) != len(b.Y)*n.pixels {
		return fmt.Errorf("nn: a batch of %d labels has %d pixels, want %d each", len(b.Y), len(b.X), n.pixels)
	}
	for i, y := range b.Y {
		if int(y) >= n.classes {
			return fmt.Errorf("nn: sample %d has label %d, want at most %d", i, y, n.classes-1)
		}
	}
	return nil
}
