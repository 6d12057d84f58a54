package trainer

import (
	"fmt"
	"math"

	"peermesh/ops/tensor"
)

// PlateauConfig has the arguments of torch's ReduceLROnPlateau. The zero value
// is PyTorch's defaults.
type PlateauConfig struct {
	Max       bool    // the metric is to grow, as an accuracy, not to fall, as a loss
	Factor    float64 // what the rates are multiplied by; zero: 0.1
	Patience  int     // how many steps without improvement are forgiven; zero: 10, negative: none
	Threshold float64 // by what part a metric must be better than the best; zero: 0.0001
	Absolute  bool    // Threshold is an amount, not a part of the best
	Cooldown  int     // for how many steps after a reduction none is counted
	Min       float64 // the least rate
	Eps       float64 // a reduction by no more than this is not made; zero: 1e-8
}

// ReduceLROnPlateau reduces the learning rates when a metric no longer improves.
type ReduceLROnPlateau struct {
	optimizer Optimizer
	config    PlateauConfig
	best      [1]float64
	bad       [1]int64 // steps without improvement
	cooldown  [1]int64 // steps left of it
}

// NewReduceLROnPlateau checks the settings.
func NewReduceLROnPlateau(o Optimizer, c PlateauConfig) (*ReduceLROnPlateau, error) {
	c.Factor = OrDefault(c.Factor, 0.1)
	c.Threshold = OrDefault(c.Threshold, 1e-4)
	c.Eps = OrDefault(c.Eps, 1e-8)
	if c.Patience == 0 {
		c.Patience = 10
	}
	c.Patience = max(c.Patience, 0)
	if c.Cooldown < 0 {
		return nil, fmt.Errorf("trainer: plateau: a cooldown of %d steps", c.Cooldown)
	}
	if err := checkSettings("plateau",
		setting{"a factor", c.Factor, belowOne},
		setting{"a threshold", c.Threshold, math.Inf(1)},
		setting{"a least rate", c.Min, math.Inf(1)},
		setting{"an epsilon", c.Eps, math.Inf(1)},
	); err != nil {
		return nil, err
	}
	r := &ReduceLROnPlateau{optimizer: o, config: c}
	r.best[0] = math.Inf(1)
	if c.Max {
		r.best[0] = math.Inf(-1)
	}
	return r, nil
}

// Step takes the metric of an epoch and reduces the rates, if it is time. All
// ranks must give the same, such as an average over them: otherwise their rates
// part, and their parameters with them. NaN is no improvement.
func (r *ReduceLROnPlateau) Step(metric float64) {
	if r.better(metric) {
		r.best[0], r.bad[0] = metric, 0
	} else {
		r.bad[0]++
	}
	if r.cooldown[0] > 0 {
		r.cooldown[0]--
		r.bad[0] = 0
	}
	if r.bad[0] <= int64(r.config.Patience) {
		return
	}
	rates := r.optimizer.Rates()
	for i, old := range rates {
		if lower := max(old*r.config.Factor, r.config.Min); old-lower > r.config.Eps {
			rates[i] = lower
		}
	}
	r.cooldown[0], r.bad[0] = int64(r.config.Cooldown), 0
}

func (r *ReduceLROnPlateau) better(metric float64) bool {
	best, threshold := r.best[0], r.config.Threshold
	if r.config.Max {
		threshold = -threshold
	}
	bound := float64(best * (1 - threshold))
	if r.config.Absolute {
		bound = best - threshold
	}
	if r.config.Max {
		return metric > bound
	}
	return metric < bound
}

// State is the best metric and what has been counted, to save and restore
// together with the optimiser's state, where the rates are.
func (r *ReduceLROnPlateau) State() []*Param {
	return []*Param{
		{Name: "plateau.best", Value: tensor.Of(r.best[:])},
		{Name: "plateau.bad_steps", Value: tensor.Of(r.bad[:])},
		{Name: "plateau.cooldown", Value: tensor.Of(r.cooldown[:])},
	}
}
