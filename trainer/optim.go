package trainer

import (
	"errors"
	"fmt"

	"peermesh/ops/tensor"
)

// An Optimizer moves parameters along their gradients. SGD and Adadelta have
// torch.optim's arithmetic, in the element type of each parameter, and allocate
// nothing in a step.
//
// A parameter whose Grad is the zero Tensor has no gradient: Step leaves it and
// its state untouched, even with weight decay. On an error nothing has moved.
//
// Equal parameters, gradients and settings give equal bits on every machine: no
// multiplication is fused with an addition, which Go leaves to the architecture
// unless a conversion stands between them. The T(x*y) below are there for that.
type Optimizer interface {
	Step() error
}

// real is an element type that can be trained.
type real interface{ float32 | float64 }

// orDefault is PyTorch's default for a setting that was left zero.
func orDefault(x, byDefault float64) float64 {
	if x == 0 {
		return byDefault
	}
	return x
}

// sign is what a gradient is multiplied by before all else.
func sign(maximize bool) float64 {
	if maximize {
		return -1
	}
	return 1
}

// A setting is an argument that must lie in [0, max], for its error message.
type setting struct {
	name       string
	value, max float64
}

func checkSettings(optimizer string, settings ...setting) error {
	for _, s := range settings {
		if !(s.value >= 0 && s.value <= s.max) { // NaN is outside, too
			return fmt.Errorf("trainer: %s: %s of %v is not in [0, %v]", optimizer, s.name, s.value, s.max)
		}
	}
	return nil
}

// slots is one tensor of zeros beside each parameter: an optimiser's memory.
func slots(params []*Param) []tensor.Tensor {
	all := make([]tensor.Tensor, len(params))
	for i, p := range params {
		all[i] = tensor.New(p.Value.DType(), p.Value.Len())
	}
	return all
}

// checkParams checks what an optimiser is built for, gradients included, which
// may be absent as yet.
func checkParams(optimizer string, params []*Param) error {
	if len(params) == 0 {
		return fmt.Errorf("trainer: %s: no parameters", optimizer)
	}
	for _, p := range params {
		if err := trainable(p); err != nil {
			return fmt.Errorf("trainer: %s: %w", optimizer, err)
		}
	}
	return nil
}

// checkStep checks the parameters again, before anything moves: anyone may have
// put other tensors in them since. slots may be nil.
func checkStep(optimizer string, params []*Param, slots []tensor.Tensor) error {
	for i, p := range params {
		err := trainable(p)
		if err == nil && slots != nil && (slots[i].Len() != p.Value.Len() || slots[i].DType() != p.Value.DType()) {
			err = fmt.Errorf("parameter %q has become %v", p.Name, p.Value)
		}
		if err != nil {
			return fmt.Errorf("trainer: %s step: %w", optimizer, err)
		}
	}
	return nil
}

// trainable checks that a parameter's elements, and its gradient's if there is
// one, are floats that the host can address.
func trainable(p *Param) error {
	switch {
	case p == nil:
		return errors.New("a parameter is nil")
	case !addressable(p.Value):
		return fmt.Errorf("parameter %q is %v, want float32 or float64 in host memory", p.Name, p.Value)
	case !hasGradient(p):
		return nil
	case p.Grad.DType() != p.Value.DType() || p.Grad.Len() != p.Value.Len():
		return fmt.Errorf("parameter %q is %v, its gradient %v", p.Name, p.Value, p.Grad)
	case !addressable(p.Grad):
		return fmt.Errorf("parameter %q has a gradient outside host memory", p.Name)
	}
	return nil
}

func hasGradient(p *Param) bool { return p.Grad.Memory() != nil }

func addressable(x tensor.Tensor) bool {
	_, single := tensor.Data[float32](x)
	_, double := tensor.Data[float64](x)
	return single || double
}

// data is the elements of a tensor that has passed trainable.
func data[T real](x tensor.Tensor) []T {
	e, _ := tensor.Data[T](x)
	return e
}
