package layers

import (
	"context"
	"errors"
	"fmt"

	"peermesh/ops/tensor"
)

// evalFloats is how much of a batch Evaluate takes at once, in floats of input.
const evalFloats = 1 << 17

// ForwardBackward leaves the gradients of the batch's mean loss in the parameters'
// Grad and returns that loss. It calls ready(i), from the calling goroutine, as soon
// as Params()[i].Grad is final: the last layer's first. After an error the gradients
// are unspecified. Once it has seen its largest batch, it allocates nothing, but for
// what a synchronised batch norm's all_reduce does.
//
// The mean is over this batch's labels. Where ranks differ in how many count, weigh
// their gradients by it: DDP.Weigh.
func (n *Net) ForwardBackward(ctx context.Context, b Batch, ready func(i int)) (float64, error) {
	z, err := n.start(ctx, b, true)
	if err != nil {
		return 0, err
	}
	p := &n.pass
	p.ready = ready
	n.dz = grow(n.dz, len(z))
	score, err := n.loss.Score(p, b, z, n.dz)
	if err != nil {
		return 0, err
	}
	if _, err := n.root.Backward(p, n.dz); err != nil {
		return 0, err
	}
	return score.Mean(), nil
}

// Evaluate judges a batch of any size. Nothing is dropped out, batch norms use their
// running statistics, and gradients, buffers and the random numbers of later steps
// stay as they are.
func (n *Net) Evaluate(ctx context.Context, b Batch) (Score, error) {
	var total Score
	samples, err := n.samples(b.X)
	if err != nil {
		return total, err
	}
	size := max(1, evalFloats/n.in.Len())
	for lo := 0; lo < samples; lo += size {
		hi := min(lo+size, samples)
		part := Batch{X: b.X[lo*n.in.Len() : hi*n.in.Len()]}
		if b.Labels != nil {
			part.Labels = b.Labels[len(b.Labels)*lo/samples : len(b.Labels)*hi/samples]
		}
		if b.Targets != nil {
			part.Targets = b.Targets[len(b.Targets)*lo/samples : len(b.Targets)*hi/samples]
		}
		z, err := n.start(ctx, part, false)
		if err != nil {
			return total, err
		}
		score, err := n.loss.Score(&n.pass, part, z, nil)
		if err != nil {
			return total, err
		}
		total = total.Plus(score)
	}
	return total, nil
}

// Forward is the output for some samples, as Evaluate computes it: Out().Len()
// floats for each, which the next call overwrites.
func (n *Net) Forward(ctx context.Context, x []float32) ([]float32, error) {
	return n.start(ctx, Batch{X: x}, false)
}

// start takes a batch forward.
func (n *Net) start(ctx context.Context, b Batch, train bool) ([]float32, error) {
	var samples int
	if len(b.X) > 0 || !train || n.group == nil { // else this rank is in the others' sums
		var err error
		if samples, err = n.samples(b.X); err != nil {
			return nil, err
		}
	}
	n.pass = Pass{N: samples, Train: train, ctx: ctx, net: n, weight: 1}
	if train {
		if n.weight > 0 {
			n.pass.weight, n.weight = n.weight, 0
		}
		if err := n.bind(); err != nil {
			return nil, err
		}
		n.masks = n.drops.At(n.step)
		n.step++
	}
	return n.root.Forward(&n.pass, b.X)
}

func (n *Net) samples(x []float32) (int, error) {
	size := n.in.Len()
	switch {
	case len(x) == 0:
		return 0, errors.New("layers: a batch of no samples")
	case len(x) > MaxBatch:
		return 0, fmt.Errorf("layers: a batch of %d floats, want at most %d", len(x), MaxBatch)
	case len(x)%size != 0:
		return 0, fmt.Errorf("layers: a batch of %d floats, want a multiple of a sample's %d", len(x), size)
	}
	return len(x) / size, nil
}

// bind looks up where the gradients are now: a DDP may have moved them. A parameter
// whose Grad has been taken away is not to be trained.
func (n *Net) bind() error {
	for _, w := range n.weights {
		if w.frozen = w.Param.Grad.Memory() == nil; w.frozen {
			w.Grad = w.own
			continue
		}
		g, ok := tensor.Data[float32](w.Param.Grad)
		if !ok || len(g) != len(w.Value) {
			return fmt.Errorf("layers: the gradient of %s has become %v", w.Param.Name, w.Param.Grad)
		}
		w.Grad = g
	}
	return nil
}

// alive is what layers of layers ask between two of them.
func (p *Pass) alive(way string) error {
	if p.ctx.Err() != nil {
		return fmt.Errorf("layers: %s: %w", way, context.Cause(p.ctx))
	}
	return nil
}
