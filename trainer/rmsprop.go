package trainer

import (
	"math"

	"peermesh/trainer/internal/vector"
)

// RMSpropConfig has the arguments of torch.optim.RMSprop. The zero value is
// PyTorch's defaults: a zero LR, Alpha or Eps stands for its default. Who must
// have one writes Zero.
type RMSpropConfig struct {
	LR          float64 // learning rate; zero: 0.01
	Alpha       float64 // what a running average keeps in a step; zero: 0.99
	Eps         float64 // keeps the denominator above 0; zero: 1e-8
	WeightDecay float64 // L2 penalty: this much of the parameter is added to its gradient
	Momentum    float64
	Centered    bool // divide by the deviation rather than by the root of the mean square
	Maximize    bool // climb rather than descend
}

// RMSprop divides each gradient by the root of the mean of its recent squares
// (Tieleman and Hinton 2012, lecture 6.5 of "Neural networks for machine
// learning"; centered: Graves 2013, arXiv 1308.0850), as torch.optim.RMSprop has
// it:
//
//	g = ±gradient + WeightDecay·p
//	sq = Alpha·sq + (1-Alpha)·g²
//	avg = Alpha·avg + (1-Alpha)·g               Centered only; else avg = 0
//	buf = Momentum·buf + g/(√(sq-avg²) + Eps)
//	p -= LR·buf
//
// The variance sq-avg² of gradients that hardly change may come out below 0. It
// is taken for 0 then, where PyTorch's parameter becomes NaN.
type RMSprop struct{ groups }

// NewRMSprop checks the settings and takes the parameters, floats in host
// memory. Their gradients may still be absent.
func NewRMSprop(params []*Param, c RMSpropConfig) (*RMSprop, error) {
	r := &RMSprop{groups{name: "RMSprop"}}
	if err := r.AddParams(params, c); err != nil {
		return nil, err
	}
	return r, nil
}

// AddParams adds a group of parameters that has other settings. A group without
// momentum must stay without: it has no memory for any.
func (r *RMSprop) AddParams(params []*Param, c RMSpropConfig) error {
	c.LR = OrDefault(c.LR, 1e-2)
	c.Alpha = OrDefault(c.Alpha, 0.99)
	c.Eps = OrDefault(c.Eps, 1e-8)
	momentum := setting{"a momentum", c.Momentum, math.Inf(1)}
	if err := checkSettings("RMSprop",
		setting{"a learning rate", c.LR, math.Inf(1)},
		setting{"an alpha", c.Alpha, 1},
		setting{"an epsilon", c.Eps, math.Inf(1)},
		setting{"a weight decay", c.WeightDecay, math.Inf(1)},
		momentum,
	); err != nil {
		return err
	}
	return r.add(group{
		params: params,
		slots: []string{"square_avg", slotIf(c.Centered, "grad_avg"),
			slotIf(c.Momentum != 0, "momentum_buffer")},
		momentum: momentum,
		still:    c.Momentum == 0,
		step:     c.step,
		single:   many(rmspropMove[float32]),
		double:   rmspropMove[float64],
	}, c.LR)
}

func (c RMSpropConfig) step(m motion) vector.Step {
	return vector.Step{Kernel: vector.RMSprop, LR: m.lr, Beta1: m.momentum, Beta2: c.Alpha, Fresh2: 1 - c.Alpha,
		Eps: c.Eps, Decay: c.WeightDecay, Sign: sign(c.Maximize)}
}

func rmspropMove[T real](e elements[T], by vector.Step) {
	x, grad, sq, avg, buf := e.x, e.grad, e.memory[0], e.memory[1], e.memory[2]
	lr, m, alpha, fresh, eps := T(by.LR), T(by.Beta1), T(by.Beta2), T(by.Fresh2), T(by.Eps)
	decay, sign := T(by.Decay), T(by.Sign)
	grad, sq = grad[:len(x)], sq[:len(x)]
	for i, v := range x {
		g := T(sign * grad[i])
		if decay != 0 {
			g += T(decay * v)
		}
		s := T(alpha*sq[i]) + T(fresh*g*g)
		sq[i] = s
		if avg != nil {
			a := T(alpha*avg[i]) + T(fresh*g)
			avg[i] = a
			s = max(s-T(a*a), 0)
		}
		g /= T(math.Sqrt(float64(s))) + eps
		if m != 0 {
			g += T(m * buf[i])
			buf[i] = g
		}
		x[i] = v - T(lr*g)
	}
}
