package trainer

import (
	"errors"
	"math"

	"peermesh/ops/tensor"
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
type SGD struct {
	params  []*Param
	config  SGDConfig
	momenta []tensor.Tensor // nil without momentum
	started []bool          // whether a parameter has had a gradient yet
}

// NewSGD checks the settings and takes the parameters, floats in host memory.
// Their gradients may still be absent.
func NewSGD(params []*Param, c SGDConfig) (*SGD, error) {
	c.LR = orDefault(c.LR, 1e-3)
	if err := checkSettings("SGD",
		setting{"a learning rate", c.LR, math.Inf(1)},
		setting{"a momentum", c.Momentum, math.Inf(1)},
		setting{"a weight decay", c.WeightDecay, math.Inf(1)},
	); err != nil {
		return nil, err
	}
	if math.IsNaN(c.Dampening) {
		return nil, errors.New("trainer: SGD: a dampening of NaN")
	}
	if c.Nesterov && (c.Momentum == 0 || c.Dampening != 0) {
		return nil, errors.New("trainer: SGD: Nesterov needs momentum and no dampening")
	}
	if err := checkParams("SGD", params); err != nil {
		return nil, err
	}
	s := &SGD{params: params, config: c, started: make([]bool, len(params))}
	if c.Momentum != 0 {
		s.momenta = slots(params)
	}
	return s, nil
}

// Step moves every parameter that has a gradient.
func (s *SGD) Step() error {
	if err := checkStep("SGD", s.params, s.momenta); err != nil {
		return err
	}
	for i, p := range s.params {
		if !hasGradient(p) {
			continue
		}
		c := s.config
		if !s.started[i] {
			c.Dampening = 0
			s.started[i] = true
		}
		var momentum tensor.Tensor
		if s.momenta != nil {
			momentum = s.momenta[i]
		}
		if p.Value.DType() == tensor.Float32 {
			sgdStep[float32](p, momentum, c)
		} else {
			sgdStep[float64](p, momentum, c)
		}
	}
	return nil
}

// sgdStep moves one parameter. momentum has elements only if the settings have
// momentum.
func sgdStep[T real](p *Param, momentum tensor.Tensor, c SGDConfig) {
	x, grad, buf := data[T](p.Value), data[T](p.Grad), data[T](momentum)
	lr, m, fresh := T(c.LR), T(c.Momentum), T(1-c.Dampening)
	decay, sign := T(c.WeightDecay), T(sign(c.Maximize))
	grad = grad[:len(x)]
	for i, v := range x {
		g := T(sign * grad[i])
		if decay != 0 {
			g += T(decay * v)
		}
		if m != 0 {
			b := T(m*buf[i]) + T(fresh*g)
			buf[i] = b
			if c.Nesterov {
				g += T(m * b)
			} else {
				g = b
			}
		}
		x[i] = v - T(lr*g)
	}
}
