package trainer

import (
	"fmt"
	"math"
)

// An Optimizer moves parameters along their gradients. Those here have
// torch.optim's arithmetic, or where it has none that of a paper, in the element
// type of each parameter, and allocate nothing in a step.
//
// The parameters are in groups, each with settings of its own: the constructor
// makes the first, and AddParams, which every optimiser has with its own
// configuration, each further one.
//
// Equal parameters, gradients and settings give equal bits on every machine: no
// multiplication is fused with an addition, which Go leaves to the architecture
// unless a conversion stands between them. The T(x*y) in the code are there for
// that.
type Optimizer interface {
	// Step moves every parameter that has a gradient. One whose Grad is the zero
	// Tensor has none: it and its state stay, even with weight decay. On an error
	// nothing has moved.
	Step() error

	// Rates are the learning rates, by group. Writing one changes it for the
	// steps to come, which is what a schedule does. AddParams makes a new slice.
	Rates() []float64

	// Momenta are, by group, SGD's and RMSprop's Momentum or the Beta1 of the
	// others, to write like Rates. It is empty for what has no momentum.
	Momenta() []float64

	// State is all that a step depends on besides parameters, gradients and
	// configuration, as tensors that share it: to save it, read them, and to
	// restore it, write them (LoadState). Their number, names, types and shapes
	// depend on the parameters and the configuration alone.
	//
	// For each parameter there are NAME.step, the int64 number of its steps, and
	// what else the optimiser remembers, under PyTorch's name and in the
	// parameter's shape, such as NAME.exp_avg. At the end come lr and, where
	// there are any, momentum, both float64 by group.
	State() []*Param
}

// Zero stands for 0 in a setting where 0 stands for a default:
//
//	AdamWConfig{WeightDecay: trainer.Zero} // rather than 0.01
const Zero = math.SmallestNonzeroFloat64

// real is an element type that can be trained.
type real interface{ float32 | float64 }

// OrDefault is what a setting of a Config stands for: the default if it was left zero, and 0
// if it is Zero.
func OrDefault(x, byDefault float64) float64 {
	switch x {
	case 0:
		return byDefault
	case Zero:
		return 0
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

// belowOne is the greatest number that is less than 1.
const belowOne = 1 - 0x1p-53

// A setting is an argument that must lie in [0, max], for its error message.
type setting struct {
	name       string
	value, max float64
}

func (s setting) valid() bool { return s.value >= 0 && s.value <= s.max } // NaN is not

func checkSettings(of string, settings ...setting) error {
	for _, s := range settings {
		if s.valid() {
			continue
		}
		limit := fmt.Sprintf("%v]", s.max)
		if s.max == belowOne {
			limit = "1)"
		}
		return fmt.Errorf("trainer: %s: %s of %v is not in [0, %s", of, s.name, s.value, limit)
	}
	return nil
}

// power is xⁿ of n ≥ 0, by multiplications alone: math.Pow may differ between
// architectures.
func power(x float64, n int64) float64 {
	result := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			result = float64(result * x)
		}
		x = float64(x * x)
	}
	return result
}

// sumOfSquares is that of the elements, added in float64 in an order that
// depends on nothing but their number. Four sums at a time keep the processor
// from waiting for one.
func sumOfSquares[T real](x []T) float64 {
	var s [4]float64
	for ; len(x) >= 4; x = x[4:] {
		for k, v := range [4]T(x[:4]) {
			s[k] += float64(float64(v) * float64(v))
		}
	}
	for k, v := range x {
		s[k] += float64(float64(v) * float64(v))
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}
