package trainer

import (
	"errors"
	"math"

	"peermesh/trainer/internal/vector"
)

// SGDConfig has the arguments of torch.optim.SGD. The zero value is PyTorch's
// defaults.
type SGDConfig struct {
	LR          float64 // learning rate; zero: 0.001, since a rate of 0 would train nothing
	Momentum    float64
	Dampening   float64 // of the gradient as it enters the momentum
	WeightDecay float64 // L2 penalty: this much of the parameter is added to its gradient
	Nesterov    bool    // needs momentum and no dampening
	Maximize    bool    // climb rather than descend
}

// SGD is stochastic gradient descent with momentum, as torch.optim.SGD has it:
//
//	g = ±gradient + WeightDecay·p
//	buf = Momentum·buf + (1-Dampening)·g      the first time buf = g, undamped
//	p -= LR·buf                               Nesterov: p -= LR·(g + Momentum·buf)
//
// It differs from Sutskever et al. (2013), "On the importance of initialization
// and momentum in deep learning", in that LR scales the velocity as it is used
// and not as it is stored.
type SGD struct{ groups }

// NewSGD checks the settings and takes the parameters, floats in host memory.
// Their gradients may still be absent.
func NewSGD(params []*Param, c SGDConfig) (*SGD, error) {
	s := &SGD{groups{name: "SGD"}}
	if err := s.AddParams(params, c); err != nil {
		return nil, err
	}
	return s, nil
}

// AddParams adds a group of parameters that has other settings. A group without
// momentum must stay without: it has no memory for any.
func (s *SGD) AddParams(params []*Param, c SGDConfig) error {
	c.LR = OrDefault(c.LR, 1e-3)
	momentum := setting{"a momentum", c.Momentum, math.Inf(1)}
	if err := checkSettings("SGD",
		setting{"a learning rate", c.LR, math.Inf(1)},
		momentum,
		setting{"a weight decay", c.WeightDecay, math.Inf(1)},
	); err != nil {
		return err
	}
	if math.IsNaN(c.Dampening) {
		return errors.New("trainer: SGD: a dampening of NaN")
	}
	if c.Nesterov && (c.Momentum == 0 || c.Dampening != 0) {
		return errors.New("trainer: SGD: Nesterov needs momentum and no dampening")
	}
	return s.add(group{
		params:   params,
		slots:    []string{slotIf(c.Momentum != 0, "momentum_buffer")},
		momentum: momentum,
		still:    c.Momentum == 0,
		step:     c.step,
		single:   many(sgdMove[float32]),
		double:   sgdMove[float64],
	}, c.LR)
}

func (c SGDConfig) step(m motion) vector.Step {
	s := vector.Step{Kernel: vector.SGD, LR: m.lr, Beta1: m.momentum, Fresh1: 1 - c.Dampening,
		Decay: c.WeightDecay, Sign: sign(c.Maximize), Nesterov: c.Nesterov}
	if m.step == 1 {
		s.Fresh1 = 1
	}
	return s
}

func sgdMove[T real](e elements[T], by vector.Step) {
	x, grad, buf := e.x, e.grad, e.memory[0]
	lr, m, fresh, decay, sign := T(by.LR), T(by.Beta1), T(by.Fresh1), T(by.Decay), T(by.Sign)
	grad = grad[:len(x)]
	for i, v := range x {
		g := T(sign * grad[i])
		if decay != 0 {
			g += T(decay * v)
		}
		if m != 0 {
			b := T(m*buf[i]) + T(fresh*g)
			buf[i] = b
			if by.Nesterov {
				g += T(m * b)
			} else {
				g = b
			}
		}
		x[i] = v - T(lr*g)
	}
}
