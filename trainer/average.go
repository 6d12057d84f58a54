package trainer

import (
	"context"
	"fmt"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// AverageGradients averages every gradient over the ranks of a group, as the
// tutorial "Writing distributed applications with PyTorch" does: one all_reduce
// a parameter, after backward, then a division by the number of ranks. [DDP] does
// it while backward runs, with fewer messages.
//
// Gradients are float32 or float64 in host memory; parameters without one are
// left out, the same on every rank.
func AverageGradients(ctx context.Context, g *ops.Group, params []*Param) error {
	if err := averageable(params); err != nil {
		return err
	}
	works := make([]*ops.Work, len(params))
	for i, p := range params {
		if p.Grad.Memory() != nil {
			works[i] = g.AllReduce(ctx, p.Grad, tensor.Sum)
		}
	}
	var first error
	for i, w := range works { // all of them: none may be at work on a gradient afterwards
		if w == nil {
			continue
		}
		if err := w.Wait(); err != nil && first == nil {
			first = fmt.Errorf("trainer: averaging the gradient of %q: %w", params[i].Name, err)
		}
	}
	if first != nil {
		return first
	}
	for _, p := range params {
		if p.Grad.Memory() != nil {
			divide(p.Grad, g.Size())
		}
	}
	return nil
}

func divide(x tensor.Tensor, n int) {
	if f, ok := tensor.Data[float32](x); ok {
		for i := range f {
			f[i] /= float32(n)
		}
		return
	}
	f, _ := tensor.Data[float64](x)
	for i := range f {
		f[i] /= float64(n)
	}
}
