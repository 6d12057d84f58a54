package layers

import (
	"math"
	"math/rand/v2"
)

// An Init draws the initial values of a parameter.
type Init func(r *rand.Rand, v []float32)

// Uniform draws from [-bound, bound).
func Uniform(bound float64) Init {
	return func(r *rand.Rand, v []float32) {
		for i := range v {
			v[i] = float32((2*r.Float64() - 1) * bound)
		}
	}
}

// Normal draws from a normal distribution of mean 0.
func Normal(deviation float64) Init {
	return func(r *rand.Rand, v []float32) {
		for i := range v {
			v[i] = float32(r.NormFloat64() * deviation)
		}
	}
}

// Constant draws nothing.
func Constant(x float32) Init {
	return func(_ *rand.Rand, v []float32) {
		for i := range v {
			v[i] = x
		}
	}
}

// fanIn is PyTorch's default for the weights and biases of linear layers and
// convolutions: within ±1/√(inputs of an output), which is kaiming_uniform_ with
// a = √5.
func fanIn(inputs int) Init { return Uniform(1 / math.Sqrt(float64(inputs))) }

// xavier is torch.nn.init.xavier_uniform_ (Glorot and Bengio, 2010).
func xavier(ins, outs int) Init { return Uniform(math.Sqrt(6 / float64(ins+outs))) }
