package trainer

import (
	"fmt"
	"math"

	"peermesh/ops/tensor"
)

// ScalerConfig has the arguments of torch.cuda.amp.GradScaler; zeros stand for
// its defaults.
type ScalerConfig struct {
	Initial  float64 // the first scale; zero: 65536
	Growth   float64 // what the scale is multiplied by now and then; zero: 2
	Backoff  float64 // and by what when a gradient was not finite; zero: 0.5
	Interval int     // finite steps in a row before it grows; zero: 2000
}

// A Scaler multiplies the loss, so that small gradients survive a short float type
// on their way, divides the averages by as much, and skips a step in which they
// are not all finite, as torch's GradScaler does. It finds by itself how large the
// scale can be.
//
// It speaks to no other rank. After averaging, all ranks have the same gradients:
// what is not finite on one is not on any, so all skip alike.
type Scaler struct {
	c     ScalerConfig
	state [2]float64 // the scale, and finite steps since it changed
}

// NewScaler checks the settings.
func NewScaler(c ScalerConfig) (*Scaler, error) {
	c.Initial = OrDefault(c.Initial, 65536)
	c.Growth = OrDefault(c.Growth, 2)
	c.Backoff = OrDefault(c.Backoff, 0.5)
	if c.Interval == 0 {
		c.Interval = 2000
	}
	if !(c.Initial > 0) || math.IsInf(c.Initial, 0) || !(c.Growth > 1) || math.IsInf(c.Growth, 0) ||
		!(c.Backoff > 0 && c.Backoff < 1) || c.Interval < 0 {
		return nil, fmt.Errorf("trainer: scaler: %+v: want a positive scale, growth above 1, backoff between 0 and 1", c)
	}
	return &Scaler{c: c, state: [2]float64{c.Initial}}, nil
}

// Scale is what to multiply the loss by in the next step, or the gradient of the
// loss, before backward.
func (s *Scaler) Scale() float64 { return s.state[0] }

// Step divides the averaged gradients by the scale and takes the optimiser's step;
// or, where one is not finite, neither, and lowers the scale. It reports whether
// it stepped. clip, if not nil, comes in between.
func (s *Scaler) Step(o Optimizer, params []*Param, clip func() error) (stepped bool, err error) {
	if unsound(params) != "" {
		s.state = [2]float64{s.state[0] * s.c.Backoff, 0}
		return false, nil
	}
	for _, p := range params {
		if hasGradient(p) {
			scale(p.Grad, 1/s.state[0])
		}
	}
	if clip != nil {
		if err := clip(); err != nil {
			return false, err
		}
	}
	if err := o.Step(); err != nil {
		return false, err
	}
	if s.state[1]++; s.state[1] >= float64(s.c.Interval) {
		if grown := s.state[0] * s.c.Growth; !math.IsInf(grown, 0) {
			s.state[0] = grown
		}
		s.state[1] = 0
	}
	return true, nil
}

// State is the scale and its age, to save and carry with an optimiser's.
func (s *Scaler) State() []*Param {
	return []*Param{{Name: "scaler.scale", Value: tensor.Of(s.state[:])}}
}
