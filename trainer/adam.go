package trainer

import (
	"math"

	"peermesh/trainer/internal/vector"
)

// AdamConfig has the arguments of torch.optim.Adam. The zero value is PyTorch's
// defaults: a zero LR, Beta1, Beta2 or Eps stands for its default. Who must have
// one writes Zero.
type AdamConfig struct {
	LR          float64 // learning rate; zero: 0.001
	Beta1       float64 // what the mean gradient keeps in a step; zero: 0.9
	Beta2       float64 // what the mean squared gradient keeps; zero: 0.999
	Eps         float64 // keeps the denominator above 0; zero: 1e-8
	WeightDecay float64 // L2 penalty: this much of the parameter is added to its gradient
	AMSGrad     bool    // divide by the root of the greatest mean square so far
	Maximize    bool    // climb rather than descend
}

// AdamWConfig has the arguments of torch.optim.AdamW. The zero value is
// PyTorch's defaults, as in AdamConfig, and of the weight decay too.
type AdamWConfig struct {
	LR          float64 // learning rate; zero: 0.001
	Beta1       float64 // what the mean gradient keeps in a step; zero: 0.9
	Beta2       float64 // what the mean squared gradient keeps; zero: 0.999
	Eps         float64 // keeps the denominator above 0; zero: 1e-8
	WeightDecay float64 // LR times this is taken off the parameter; zero: 0.01
	AMSGrad     bool    // divide by the root of the greatest mean square so far
	Maximize    bool    // climb rather than descend
}

// Adam moves each element by the mean of its recent gradients over the root of
// the mean of their squares (Kingma and Ba 2015, "Adam: A method for stochastic
// optimization", arXiv 1412.6980), as torch.optim.Adam has it, at step t:
//
//	g = ±gradient + WeightDecay·p
//	m = Beta1·m + (1-Beta1)·g
//	v = Beta2·v + (1-Beta2)·g²
//	d = √v / √(1-Beta2ᵗ) + Eps         AMSGrad: the greatest v so far
//	p -= LR/(1-Beta1ᵗ) · m/d
//
// AMSGrad is of Reddi et al. (2018), "On the convergence of Adam and beyond".
type Adam struct{ groups }

// NewAdam checks the settings and takes the parameters, floats in host memory.
// Their gradients may still be absent.
func NewAdam(params []*Param, c AdamConfig) (*Adam, error) {
	a := &Adam{groups{name: "Adam"}}
	if err := a.AddParams(params, c); err != nil {
		return nil, err
	}
	return a, nil
}

// AddParams adds a group of parameters that has other settings.
func (a *Adam) AddParams(params []*Param, c AdamConfig) error {
	return a.addAdam(params, c, false)
}

// AdamW is Adam with a weight decay that does not pass through the averages
// (Loshchilov and Hutter 2019, "Decoupled weight decay regularization", arXiv
// 1711.05101), as torch.optim.AdamW has it: first of all p *= 1 - LR·WeightDecay,
// and then g = ±gradient.
type AdamW struct{ groups }

// NewAdamW checks the settings and takes the parameters, floats in host memory.
// Their gradients may still be absent.
func NewAdamW(params []*Param, c AdamWConfig) (*AdamW, error) {
	a := &AdamW{groups{name: "AdamW"}}
	if err := a.AddParams(params, c); err != nil {
		return nil, err
	}
	return a, nil
}

// AddParams adds a group of parameters that has other settings.
func (a *AdamW) AddParams(params []*Param, c AdamWConfig) error {
	c.WeightDecay = OrDefault(c.WeightDecay, 0.01)
	return a.addAdam(params, AdamConfig(c), true)
}

// addAdam adds a group of Adam's or, decoupled, of AdamW's.
func (g *groups) addAdam(params []*Param, c AdamConfig, decoupled bool) error {
	c.LR = OrDefault(c.LR, 1e-3)
	c.Beta1 = OrDefault(c.Beta1, 0.9)
	c.Beta2 = OrDefault(c.Beta2, 0.999)
	c.Eps = OrDefault(c.Eps, 1e-8)
	momentum := setting{"a beta1", c.Beta1, belowOne}
	if err := checkSettings(g.name,
		setting{"a learning rate", c.LR, math.Inf(1)},
		momentum,
		setting{"a beta2", c.Beta2, belowOne},
		setting{"an epsilon", c.Eps, math.Inf(1)},
		setting{"a weight decay", c.WeightDecay, math.Inf(1)},
	); err != nil {
		return err
	}
	return g.add(group{
		params:   params,
		slots:    []string{"exp_avg", "exp_avg_sq", slotIf(c.AMSGrad, "max_exp_avg_sq")},
		momentum: momentum,
		step:     func(m motion) vector.Step { return c.step(m, decoupled) },
		single:   many(adamMove[float32]),
		double:   adamMove[float64],
	}, c.LR)
}

// step computes in float64 what is one number for all elements, as PyTorch does.
func (c AdamConfig) step(m motion, decoupled bool) vector.Step {
	s := vector.Step{Kernel: vector.Adam, LR: m.lr / (1 - power(m.momentum, m.step)),
		Beta1: m.momentum, Fresh1: 1 - m.momentum, Beta2: c.Beta2, Fresh2: 1 - c.Beta2,
		Eps: c.Eps, Root: math.Sqrt(1 - power(c.Beta2, m.step)),
		Scale: 1, Decay: c.WeightDecay, Sign: sign(c.Maximize)}
	if decoupled {
		s.Scale, s.Decay = 1-float64(m.lr*c.WeightDecay), 0
	}
	return s
}

func adamMove[T real](e elements[T], by vector.Step) {
	x, grad, mean, square, peak := e.x, e.grad, e.memory[0], e.memory[1], e.memory[2]
	lr, beta1, fresh1, beta2, fresh2 := T(by.LR), T(by.Beta1), T(by.Fresh1), T(by.Beta2), T(by.Fresh2)
	eps, root, keep, decay, sign := T(by.Eps), T(by.Root), T(by.Scale), T(by.Decay), T(by.Sign)
	grad, mean, square = grad[:len(x)], mean[:len(x)], square[:len(x)]
	for i, v := range x {
		g := T(sign * grad[i])
		if decay != 0 {
			g += T(decay * v)
		}
		m := T(beta1*mean[i]) + T(fresh1*g)
		s := T(beta2*square[i]) + T(fresh2*g*g)
		mean[i], square[i] = m, s
		if peak != nil {
			s = max(s, peak[i])
			peak[i] = s
		}
		d := T(math.Sqrt(float64(s)))/root + eps
		x[i] = T(keep*v) - T(lr*m/d)
	}
}
