package trainer

import (
	"math"

	"peermesh/trainer/internal/vector"
)

// AdadeltaConfig has the arguments of torch.optim.Adadelta. The zero value is
// PyTorch's defaults: a zero LR, Rho or Eps stands for its default, for as zeros
// they train nothing (LR, Eps) or are better said by SGD (Rho). Who must have
// one writes Zero.
type AdadeltaConfig struct {
	LR          float64 // learning rate; zero: 1
	Rho         float64 // what a running average keeps in a step; zero: 0.9
	Eps         float64 // keeps the root above 0, and starts the motion; zero: 1e-6
	WeightDecay float64 // L2 penalty: this much of the parameter is added to its gradient
	Maximize    bool    // climb rather than descend
}

// Adadelta adapts each element's rate to the ratio of its recent moves to its
// recent gradients (Zeiler 2012, "ADADELTA: An adaptive learning rate method",
// arXiv 1212.5701), as torch.optim.Adadelta has it:
//
//	g = ±gradient + WeightDecay·p
//	sq = Rho·sq + (1-Rho)·g²
//	d = √(acc+Eps) / √(sq+Eps) · g
//	acc = Rho·acc + (1-Rho)·d²
//	p -= LR·d
type Adadelta struct{ groups }

// NewAdadelta checks the settings and takes the parameters, floats in host
// memory. Their gradients may still be absent.
func NewAdadelta(params []*Param, c AdadeltaConfig) (*Adadelta, error) {
	a := &Adadelta{groups{name: "Adadelta"}}
	if err := a.AddParams(params, c); err != nil {
		return nil, err
	}
	return a, nil
}

// AddParams adds a group of parameters that has other settings.
func (a *Adadelta) AddParams(params []*Param, c AdadeltaConfig) error {
	c.LR = OrDefault(c.LR, 1)
	c.Rho = OrDefault(c.Rho, 0.9)
	c.Eps = OrDefault(c.Eps, 1e-6)
	if err := checkSettings("Adadelta",
		setting{"a learning rate", c.LR, math.Inf(1)},
		setting{"a rho", c.Rho, 1},
		setting{"an epsilon", c.Eps, math.Inf(1)},
		setting{"a weight decay", c.WeightDecay, math.Inf(1)},
	); err != nil {
		return err
	}
	return a.add(group{
		params: params,
		slots:  []string{"square_avg", "acc_delta"},
		step:   c.step,
		single: many(adadeltaMove[float32]),
		double: adadeltaMove[float64],
	}, c.LR)
}

func (c AdadeltaConfig) step(m motion) vector.Step {
	return vector.Step{Kernel: vector.Adadelta, LR: m.lr, Beta2: c.Rho, Fresh2: 1 - c.Rho, Eps: c.Eps,
		Decay: c.WeightDecay, Sign: sign(c.Maximize)}
}

// adadeltaMove takes the root of a float32 in float32: the compiler knows that the detour over
// math.Sqrt rounds to the same.
func adadeltaMove[T real](e elements[T], by vector.Step) {
	x, grad, sq, acc := e.x, e.grad, e.memory[0], e.memory[1]
	lr, rho, fresh, eps, decay, sign := T(by.LR), T(by.Beta2), T(by.Fresh2), T(by.Eps), T(by.Decay), T(by.Sign)
	grad, sq, acc = grad[:len(x)], sq[:len(x)], acc[:len(x)]
	for i, v := range x {
		g := T(sign * grad[i])
		if decay != 0 {
			g += T(decay * v)
		}
		sq[i] = T(rho*sq[i]) + T(fresh*g*g)
		d := T(math.Sqrt(float64(acc[i]+eps))) / T(math.Sqrt(float64(sq[i]+eps))) * g
		acc[i] = T(rho*acc[i]) + T(fresh*d*d)
		x[i] = v - T(lr*d)
	}
}
