package trainer

import (
	"math"

	"peermesh/trainer/internal/vector"
)

// LionConfig has the settings of Lion. A zero LR, Beta1 or Beta2 stands for its
// default, those of the authors' code. Who must have one writes Zero.
type LionConfig struct {
	LR          float64 // learning rate; zero: 0.0001, a third to a tenth of what suits AdamW
	Beta1       float64 // what the move keeps of the mean gradient; zero: 0.9
	Beta2       float64 // what the mean gradient keeps in a step; zero: 0.99
	WeightDecay float64 // LR times this is taken off the parameter; three to ten times AdamW's
	Maximize    bool    // climb rather than descend
}

// Lion moves every element by the same amount, in the direction that a mean of
// its gradients has: its memory is half of Adam's (Chen et al. 2023, "Symbolic
// discovery of optimization algorithms", arXiv 2302.06675, algorithm 2):
//
//	g = ±gradient
//	c = Beta1·m + (1-Beta1)·g
//	p -= LR · (sign(c) + WeightDecay·p)
//	m = Beta2·m + (1-Beta2)·g
//
// It is what the authors' code for PyTorch does.
type Lion struct{ groups }

// NewLion checks the settings and takes the parameters, floats in host memory.
// Their gradients may still be absent.
func NewLion(params []*Param, c LionConfig) (*Lion, error) {
	l := &Lion{groups{name: "Lion"}}
	if err := l.AddParams(params, c); err != nil {
		return nil, err
	}
	return l, nil
}

// AddParams adds a group of parameters that has other settings.
func (l *Lion) AddParams(params []*Param, c LionConfig) error {
	c.LR = OrDefault(c.LR, 1e-4)
	c.Beta1 = OrDefault(c.Beta1, 0.9)
	c.Beta2 = OrDefault(c.Beta2, 0.99)
	momentum := setting{"a beta1", c.Beta1, belowOne}
	if err := checkSettings("Lion",
		setting{"a learning rate", c.LR, math.Inf(1)},
		momentum,
		setting{"a beta2", c.Beta2, belowOne},
		setting{"a weight decay", c.WeightDecay, math.Inf(1)},
	); err != nil {
		return err
	}
	return l.add(group{
		params:   params,
		slots:    []string{"exp_avg"},
		momentum: momentum,
		step:     c.step,
		single:   many(lionMove[float32]),
		double:   lionMove[float64],
	}, c.LR)
}

func (c LionConfig) step(m motion) vector.Step {
	return vector.Step{Kernel: vector.Lion, LR: m.lr, Beta1: m.momentum, Fresh1: 1 - m.momentum, Beta2: c.Beta2, Fresh2: 1 - c.Beta2,
		Decay: c.WeightDecay, Sign: sign(c.Maximize)}
}

// lionMove makes an element whose gradient is not a number none either: a sign of 0
// would hide it.
func lionMove[T real](e elements[T], by vector.Step) {
	x, grad, mean := e.x, e.grad, e.memory[0]
	lr, beta1, fresh1, beta2, fresh2 := T(by.LR), T(by.Beta1), T(by.Fresh1), T(by.Beta2), T(by.Fresh2)
	decay, sign := T(by.Decay), T(by.Sign)
	grad, mean = grad[:len(x)], mean[:len(x)]
	for i, v := range x {
		g, m := T(sign*grad[i]), mean[i]
		direction := T(beta1*m) + T(fresh1*g)
		if direction > 0 {
			direction = 1
		} else if direction < 0 {
			direction = -1
		}
		x[i] = v - T(lr*(direction+T(decay*v)))
		mean[i] = T(beta2*m) + T(fresh2*g)
	}
}
