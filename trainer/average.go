package trainer

import (
	"context"
	"fmt"
	"slices"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// AverageGradients averages every gradient over the ranks of a group, as the
// tutorial "Writing distributed applications with PyTorch" does: one all_reduce
// a parameter, after backward, then a division by the number of ranks. [DDP] does
// it while backward runs, with fewer messages.
//
// Gradients are float32 or float64, in host memory or where the model has them, as on a
// GPU; parameters without one are left out, the same on every rank.
func AverageGradients(ctx context.Context, g *ops.Group, params []*Param) error {
	check := averageable
	if slices.ContainsFunc(params, elsewhere) {
		check = func(p []*Param) error { return placeable(p, DDPConfig{}) }
	}
	if err := check(params); err != nil {
		return err
	}
	works := make([]*ops.Work, len(params))
	for i, p := range params {
		switch {
		case elsewhere(p):
			works[i] = g.AllReduce(ctx, p.Grad, tensor.Avg) // divided there
		case p.Grad.Memory() != nil:
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
		if p.Grad.Memory() != nil && !elsewhere(p) {
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
