package trainer

import (
	"math"

	"peermesh/trainer/internal/vector"
)

// AdagradConfig has the arguments of torch.optim.Adagrad. The zero value is
// PyTorch's defaults: a zero LR or Eps stands for its default. Who must have one
// writes Zero.
type AdagradConfig struct {
	LR          float64 // learning rate; zero: 0.01
	LRDecay     float64 // by how much the rate's divisor grows in a step
	WeightDecay float64 // L2 penalty: this much of the parameter is added to its gradient
	Initial     float64 // what the sums of squares start with
	Eps         float64 // keeps the denominator above 0; zero: 1e-10
	Maximize    bool    // climb rather than descend
}

// Adagrad divides each element's rate by the root of the sum of all its squared
// gradients (Duchi et al. 2011, "Adaptive subgradient methods for online learning
// and stochastic optimization"), as torch.optim.Adagrad has it, at step t:
//
//	g = ±gradient + WeightDecay·p
//	sum += g²
//	p -= LR/(1 + (t-1)·LRDecay) · g/(√sum + Eps)
type Adagrad struct{ groups }

// NewAdagrad checks the settings and takes the parameters, floats in host
// memory. Their gradients may still be absent.
func NewAdagrad(params []*Param, c AdagradConfig) (*Adagrad, error) {
	a := &Adagrad{groups{name: "Adagrad"}}
	if err := a.AddParams(params, c); err != nil {
		return nil, err
	}
	return a, nil
}

// AddParams adds a group of parameters that has other settings.
func (a *Adagrad) AddParams(params []*Param, c AdagradConfig) error {
	c.LR = OrDefault(c.LR, 1e-2)
	c.Eps = OrDefault(c.Eps, 1e-10)
	if err := checkSettings("Adagrad",
		setting{"a learning rate", c.LR, math.Inf(1)},
		setting{"a learning rate decay", c.LRDecay, math.Inf(1)},
		setting{"a weight decay", c.WeightDecay, math.Inf(1)},
		setting{"an initial sum", c.Initial, math.Inf(1)},
		setting{"an epsilon", c.Eps, math.Inf(1)},
	); err != nil {
		return err
	}
	return a.add(group{
		params: params,
		slots:  []string{"sum"},
		start:  c.Initial,
		step:   c.step,
		single: many(adagradMove[float32]),
		double: adagradMove[float64],
	}, c.LR)
}

func (c AdagradConfig) step(m motion) vector.Step {
	return vector.Step{Kernel: vector.Adagrad, LR: m.lr / (1 + float64(float64(m.step-1)*c.LRDecay)), Eps: c.Eps,
		Decay: c.WeightDecay, Sign: sign(c.Maximize)}
}

func adagradMove[T real](e elements[T], by vector.Step) {
	x, grad, sum := e.x, e.grad, e.memory[0]
	lr, eps, decay, sign := T(by.LR), T(by.Eps), T(by.Decay), T(by.Sign)
	grad, sum = grad[:len(x)], sum[:len(x)]
	for i, v := range x {
		g := T(sign * grad[i])
		if decay != 0 {
			g += T(decay * v)
		}
		sum[i] += T(g * g)
		x[i] = v - T(lr*g/(T(math.Sqrt(float64(sum[i])))+eps))
	}
}
