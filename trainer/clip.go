package trainer

import (
	"cmp"
	"fmt"
	"math"

	"peermesh/ops/tensor"
	"peermesh/trainer/internal/finite"
)

// ClipGradNorm scales all gradients alike, so that their norm, taken as if they
// were one vector, is at most max. It returns the norm before.
// torch.nn.utils.clip_grad_norm_ is its model: the factor is max/(norm+1e-6),
// where that is below 1. Sums are of float64, in an order that is the same on
// every machine.
//
// It speaks to no other rank. Call it between the averaging, after which all
// ranks have the same gradients, and Step: then all have the same norm, too.
//
// A norm that is not finite is a *[NormError], and leaves the gradients alone, where
// PyTorch makes NaN of them. It is returned besides the error: whoever would
// rather skip the step than end the run can look at it.
func ClipGradNorm(params []*Param, max float64) (norm float64, err error) {
	if err := checkSettings("clip", setting{"a norm", max, math.Inf(1)}); err != nil {
		return 0, err
	}
	var squares float64
	for _, p := range params {
		if err := trainable(p); err != nil {
			return 0, fmt.Errorf("trainer: clip: %w", err)
		}
		if hasGradient(p) {
			squares += sumOfSquares(data[float32](p.Grad)) + sumOfSquares(data[float64](p.Grad))
		}
	}
	norm = math.Sqrt(squares)
	if !finite.Number(norm) {
		return norm, &NormError{Norm: norm, Param: unsound(params)}
	}
	if factor := max / (norm + 1e-6); factor < 1 {
		for _, p := range params {
			scale(p.Grad, factor)
		}
	}
	return norm, nil
}

// A NormError says that gradients cannot be clipped, as their norm is not finite.
type NormError struct {
	Norm  float64
	Param string // the first with an element that is not finite; empty: the sum of squares overflows
}

func (e *NormError) Error() string {
	text := fmt.Sprintf("trainer: clip: the gradients have a norm of %v", e.Norm)
	if e.Param == "" {
		return text
	}
	return text + fmt.Sprintf(": that of %q is the first that is not finite", e.Param)
}

// unsound is the name of the first parameter whose gradient is not finite, or empty.
func unsound(params []*Param) string {
	for i, p := range params {
		if hasGradient(p) && !finite.Tensor(p.Grad) {
			return cmp.Or(p.Name, fmt.Sprint("parameter ", i))
		}
	}
	return ""
}

// scale multiplies what has passed trainable.
func scale(x tensor.Tensor, factor float64) {
	short := float32(factor) // here: in the loop it would be made anew for each element

	single, double := data[float32](x), data[float64](x) // one is nil
	for i := range single {
		single[i] *= short
	}
	for i := range double {
		double[i] *= factor
	}
}
