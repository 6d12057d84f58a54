package trainer

import "fmt"

// OneCycle lets the rate rise from a Div-th of its base to the base, and then
// fall far below where it began, while the momentum does the opposite (Smith and
// Topin 2019, "Super-convergence: Very fast training of neural networks using
// large learning rates", arXiv 1708.07120), as torch's OneCycleLR. The base, the
// rate that the optimiser was built with, is what torch calls max_lr. A step is
// a batch. After Steps steps all stays as it is.
type OneCycle struct {
	Steps        int
	Rise         float64 // the part of the steps in which the rate rises; zero: 0.3
	Div          float64 // the base over the first rate; zero: 25
	FinalDiv     float64 // the first rate over the last; zero: 10,000
	Linear       bool    // evenly, rather than along half a wave of a cosine
	ThreePhase   bool    // fall to the first rate in as many steps as the rise had, then to the last
	KeepMomentum bool    // leave the momentum alone, as one must where there is none
	MinMomentum  float64 // at the greatest rate; zero: 0.85
	MaxMomentum  float64 // at first and at last; zero: 0.95
}

func (c OneCycle) check() error {
	if c.Steps < 1 {
		return fmt.Errorf("trainer: one cycle of %d steps", c.Steps)
	}
	c = c.settled()
	if !(c.Div > 0 && c.FinalDiv > 0) {
		return fmt.Errorf("trainer: one cycle: divisors of %v and %v", c.Div, c.FinalDiv)
	}
	return checkSettings("one cycle",
		setting{"a rise", c.Rise, 1},
		setting{"a least momentum", c.MinMomentum, belowOne},
		setting{"a greatest momentum", c.MaxMomentum, belowOne},
	)
}

func (c OneCycle) settled() OneCycle {
	c.Rise = OrDefault(c.Rise, 0.3)
	c.Div = OrDefault(c.Div, 25)
	c.FinalDiv = OrDefault(c.FinalDiv, 1e4)
	c.MinMomentum = OrDefault(c.MinMomentum, 0.85)
	c.MaxMomentum = OrDefault(c.MaxMomentum, 0.95)
	return c
}

// Rate is the learning rate of step t of the cycle.
func (c OneCycle) Rate(t int, base float64) float64 {
	c = c.settled()
	first := base / c.Div
	return c.at(t, [4]float64{first, base, first, first / c.FinalDiv})
}

func (c OneCycle) cycles() bool { return !c.KeepMomentum }

func (c OneCycle) momentum(t int) float64 {
	c = c.settled()
	return c.at(t, [4]float64{c.MaxMomentum, c.MinMomentum, c.MaxMomentum, c.MaxMomentum})
}

// at is where something is in step t that is first at via[0], then at via[1], in
// three phases at via[2], and at last at via[3].
func (c OneCycle) at(t int, via [4]float64) float64 {
	n := float64(c.Steps)
	x := min(float64(t), n-1)
	rise := float64(c.Rise*n) - 1 // the step with the greatest rate
	fall := float64(2*c.Rise*n) - 2
	switch {
	case x <= rise:
		return c.between(via[0], via[1], x, 0, rise)
	case !c.ThreePhase:
		return c.between(via[1], via[3], x, rise, n-1)
	case x <= fall:
		return c.between(via[1], via[2], x, rise, fall)
	}
	return c.between(via[2], via[3], x, fall, n-1)
}

// between is how far it has come from a to b as x goes from start to end.
func (c OneCycle) between(a, b, x, start, end float64) float64 {
	part := 1.0 // of a phase that is a single step
	if end != start {
		part = (x - start) / (end - start)
	}
	if c.Linear {
		return linear(a, b, part)
	}
	return cosine(a, b, part)
}
