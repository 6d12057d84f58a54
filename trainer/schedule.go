package trainer

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"peermesh/ops/tensor"
)

// A Curve is a learning rate over time. StepLR, CosineAnnealing, Warmup and
// OneCycle are curves, with torch.optim.lr_scheduler's formulas; CurveFunc makes
// one of a function. One that adapts to the training is ReduceLROnPlateau.
type Curve interface {
	// Rate is the learning rate of step t, counted from 0, for parameters whose
	// optimiser was built with the rate base.
	Rate(t int, base float64) float64
}

// CurveFunc is a function as a Curve, as torch's LambdaLR.
type CurveFunc func(t int, base float64) float64

// Rate calls f.
func (f CurveFunc) Rate(t int, base float64) float64 { return f(t, base) }

// A Schedule moves the learning rates of an optimiser along a curve. What a step
// of it is, a batch or an epoch, is the caller's choice.
type Schedule struct {
	optimizer Optimizer
	curve     Curve
	base      []float64 // the rates at first, by group
	t         [1]int64
}

// NewSchedule takes the rates that the optimiser has for the base of the curve,
// so all groups must be there, and sets those of step 0.
func NewSchedule(o Optimizer, c Curve) (*Schedule, error) {
	if c, ok := c.(interface{ check() error }); ok {
		if err := c.check(); err != nil {
			return nil, err
		}
	}
	s := &Schedule{optimizer: o, curve: c, base: slices.Clone(o.Rates())}
	if c, ok := c.(cycler); ok && c.cycles() {
		if len(o.Momenta()) == 0 || slices.Contains(o.Momenta(), 0) {
			return nil, errors.New("trainer: a cycle of the momentum, which the optimiser lacks")
		}
	}
	s.apply()
	return s, nil
}

// Step sets the rates of the next step. It comes after the optimiser's.
func (s *Schedule) Step() {
	s.t[0]++
	s.apply()
}

func (s *Schedule) apply() {
	for i, base := range s.base {
		s.optimizer.Rates()[i] = s.curve.Rate(int(s.t[0]), base)
	}
	if c, ok := s.curve.(cycler); ok && c.cycles() {
		for i := range s.base {
			s.optimizer.Momenta()[i] = c.momentum(int(s.t[0]))
		}
	}
}

// State is the step and the rates at first, to save and restore like an
// optimiser's and together with it: the rates of the moment are there.
func (s *Schedule) State() []*Param {
	return []*Param{
		{Name: "schedule.step", Value: tensor.Of(s.t[:])},
		{Name: "schedule.base_lr", Value: tensor.Of(s.base)},
	}
}

// cycler is a curve of the momentum besides.
type cycler interface {
	cycles() bool
	momentum(t int) float64
}

// StepLR multiplies the rate by Gamma each Every steps.
type StepLR struct {
	Every int
	Gamma float64 // zero: 0.1
}

func (c StepLR) check() error {
	if c.Every < 1 {
		return fmt.Errorf("trainer: step schedule: every %d steps", c.Every)
	}
	return checkSettings("step schedule", setting{"a gamma", c.Gamma, math.Inf(1)})
}

// Rate is base·Gamma^⌊t/Every⌋.
func (c StepLR) Rate(t int, base float64) float64 {
	return base * power(OrDefault(c.Gamma, 0.1), int64(t/c.Every))
}

// CosineAnnealing takes the rate down to Min in Steps steps, along half a wave of
// a cosine, and then up again, and so on (Loshchilov and Hutter 2017, "SGDR:
// Stochastic gradient descent with warm restarts", arXiv 1608.03983, without the
// restarts).
type CosineAnnealing struct {
	Steps int
	Min   float64
}

func (c CosineAnnealing) check() error {
	if c.Steps < 1 {
		return fmt.Errorf("trainer: cosine schedule: in %d steps", c.Steps)
	}
	return checkSettings("cosine schedule", setting{"a least rate", c.Min, math.Inf(1)})
}

// Rate is Min + (base-Min)·(1 + cos(πt/Steps))/2.
func (c CosineAnnealing) Rate(t int, base float64) float64 {
	return cosine(base, c.Min, float64(t)/float64(c.Steps))
}

// Warmup lets the rate rise from Start times what it is to be, evenly and in
// Steps steps, and then hands over to another curve: torch's LinearLR, and a
// SequentialLR of it and the other.
type Warmup struct {
	Steps int     // zero: 5
	Start float64 // zero: a third
	Then  Curve   // from step Steps on, which is its step 0; nil: the rate stays
}

func (c Warmup) check() error {
	if c.Steps < 0 {
		return fmt.Errorf("trainer: warm-up of %d steps", c.Steps)
	}
	if then, ok := c.Then.(interface{ check() error }); ok {
		if err := then.check(); err != nil {
			return err
		}
	}
	if _, ok := c.Then.(cycler); ok {
		return errors.New("trainer: warm-up before a cycle, which has its own")
	}
	return checkSettings("warm-up", setting{"a start", c.Start, 1})
}

// Rate is base·(Start + (1-Start)·t/Steps) at first.
func (c Warmup) Rate(t int, base float64) float64 {
	if c.Steps == 0 {
		c.Steps = 5
	}
	first := OrDefault(c.Start, 1.0/3)
	switch {
	case t < c.Steps:
		return base * linear(first, 1, float64(t)/float64(c.Steps))
	case c.Then == nil:
		return base
	}
	return c.Then.Rate(t-c.Steps, base)
}

// linear and cosine go from one number to another as x goes from 0 to 1, evenly
// or along half a wave.

func linear(from, to, x float64) float64 { return from + float64((to-from)*x) }

func cosine(from, to, x float64) float64 { return to + float64((from-to)/2*(1+cosPi(x))) }

// cosPi is cos(πx) to within 1e-15. It does not use math.Cos, whose last bit may
// differ between architectures, and with it the parameters of ranks.
func cosPi(x float64) float64 {
	x = math.Mod(math.Abs(x), 2)
	if x > 1 {
		x = 2 - x
	}
	if x > 0.5 {
		return -cosPi(1 - x)
	}
	square := float64(math.Pi * x * math.Pi * x)
	series := 1.0
	for k := 24.0; k > 0; k -= 2 { // Taylor's: (π/2)²⁶/26! is below 1e-21
		series = 1 - float64(square/(k*(k-1))*series)
	}
	return series
}
