package fit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"peermesh/trainer/internal/finite"
)

// EarlyStopping ends the run when a metric of the validation no longer improves, on all
// ranks at once. It is Lightning's callback of that name. What it counts is part of the
// run's state.
type EarlyStopping struct {
	Base
	Monitor  string  // the metric; zero: "val/loss"
	Max      bool    // it is to grow, as an accuracy, not to fall, as a loss
	Patience int     // how many validations in a row without improvement end it; zero: 3
	MinDelta float64 // what is not better by more than this is no improvement
	// Stop ends the run at once when the metric is at least so good; nil: no matter.
	Stop *float64
	// CheckFinite ends the run at once when the metric is infinite or not a number, which is
	// no improvement otherwise; nil: true. Run.Stopped says the value, and where it was.
	CheckFinite *bool

	memory []float64 // best, validations since
}

// Memory is the best value so far and the number of validations since then.
func (e *EarlyStopping) Memory() (string, []float64) {
	if e.memory == nil {
		e.memory = []float64{worst(e.Max), 0}
	}
	return "early_stopping." + monitored(e.Monitor), e.memory
}

// ValidationEnd looks at the metric. One that nobody has is an error.
func (e *EarlyStopping) ValidationEnd(_ context.Context, r *Run) error {
	if r.FastRun() {
		return nil
	}
	name := monitored(e.Monitor)
	value, err := lookUp(r, name)
	if err != nil {
		return err
	}
	_, m := e.Memory()
	if (e.CheckFinite == nil || *e.CheckFinite) && !finite.Number(value) {
		at := r.Progress()
		r.Stop(fmt.Sprintf("%s is %v, which is not finite, after step %d, in epoch %d; its best was %v", name, value, at.Step, at.Epoch, m[0]))
		return nil
	}
	if better(value, m[0], e.MinDelta, e.Max) {
		m[0], m[1] = value, 0
	} else {
		m[1]++
	}
	switch {
	case e.Stop != nil && (value == *e.Stop || better(value, *e.Stop, 0, e.Max)):
		r.Stop(fmt.Sprintf("%s is %v, good enough at %v", name, value, *e.Stop))
	case m[1] >= float64(cmp.Or(e.Patience, 3)):
		r.Stop(fmt.Sprintf("%s has not improved on %v in %v validations", name, m[0], m[1]))
	}
	return nil
}

// monitored is the metric that callbacks and a plateau look at unless told otherwise.
func monitored(name string) string { return cmp.Or(name, validPrefix+"loss") }

func lookUp(r *Run, name string) (float64, error) {
	value, ok := r.Metric(name)
	if !ok {
		return 0, fmt.Errorf("there is no metric %q to monitor", name)
	}
	return value, nil
}

func worst(max bool) float64 {
	if max {
		return math.Inf(-1)
	}
	return math.Inf(1)
}

// better is whether a value improves on another by more than delta. NaN does not.
func better(value, than, delta float64, max bool) bool {
	if max {
		return value > than+delta
	}
	return value < than-delta
}

// A Timer ends the run after some time in this process, on all ranks after the same
// step, when it is up on any of them.
type Timer struct {
	Base
	Max time.Duration // above 0
}

// FitStart refuses a time that is over before it begins.
func (t *Timer) FitStart(context.Context, *Run) error {
	if t.Max <= 0 {
		return fmt.Errorf("a run of %v: want a time above 0", t.Max)
	}
	return nil
}

// StepStart looks at the clock, so that the step at hand may be the last.
func (t *Timer) StepStart(_ context.Context, r *Run) error {
	if r.Elapsed() >= t.Max {
		r.Stop(fmt.Sprintf("%v are over", t.Max))
	}
	return nil
}
