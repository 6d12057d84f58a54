package trainer

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"peermesh/ops/tensor"
)

// A warm-up over three steps, and then a cosine down to nothing.
func ExampleSchedule() {
	w := &Param{Name: "w", Value: tensor.New(tensor.Float32, 10)}
	o, err := NewAdamW([]*Param{w}, AdamWConfig{LR: .1})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := NewSchedule(o, Warmup{Steps: 3, Start: .1, Then: CosineAnnealing{Steps: 4}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 8 {
		fmt.Printf("%.3f ", o.Rates()[0]) // and a step of the optimiser
		s.Step()
	}
	// Output: 0.010 0.040 0.070 0.100 0.085 0.050 0.015 0.000
}

// sgd is an optimiser with two groups.
func sgd(t *testing.T, c SGDConfig) *SGD {
	t.Helper()
	a, _ := one("a", 1, 1)
	b, _ := one("b", 1, 1)
	o, err := NewSGD([]*Param{a}, c)
	if err == nil {
		c.LR = 2
		err = o.AddParams([]*Param{b}, c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestCurveFunc(t *testing.T) {
	o := sgd(t, SGDConfig{LR: 1})
	s, err := NewSchedule(o, CurveFunc(func(t int, base float64) float64 { return base / float64(t+1) }))
	if err != nil {
		t.Fatal(err)
	}
	for k := range 4 {
		near(t, fmt.Sprint("step ", k), o.Rates(), []float64{1 / float64(k+1), 2 / float64(k+1)}, 0)
		s.Step()
	}
}

// TestAfterTheCycle stays where the cycle ended, where PyTorch raises an error.
func TestAfterTheCycle(t *testing.T) {
	o := sgd(t, SGDConfig{LR: 1, Momentum: .9})
	s, err := NewSchedule(o, OneCycle{Steps: 5, Div: 10, FinalDiv: 100})
	if err != nil {
		t.Fatal(err)
	}
	for range 9 {
		s.Step()
	}
	near(t, "rates", o.Rates(), []float64{.001, .002}, 1e-15)
	near(t, "momenta", o.Momenta(), []float64{.95, .95}, 1e-15)
}

// TestCycleOfOneStepUp has a rise from step 0 to step 0, by which PyTorch divides.
func TestCycleOfOneStepUp(t *testing.T) {
	for _, c := range []OneCycle{{Steps: 10, Rise: .1, Linear: true}, {Steps: 10, Rise: .1}, {Steps: 1}, {Steps: 10, Rise: 1}} {
		for step := range 12 {
			if rate := c.Rate(step, 1); !(rate > 0 && rate <= 1) {
				t.Errorf("%+v: %v in step %d", c, rate, step)
			}
		}
	}
	if rate := (OneCycle{Steps: 10, Rise: .1}).Rate(0, 1); rate != 1 {
		t.Errorf("%v at the top", rate)
	}
}

// TestCycleNeedsMomentum says that it lacks, save where it is to be left alone.
func TestCycleNeedsMomentum(t *testing.T) {
	w, _ := one("w", 1, 1)
	a, err := NewAdagrad([]*Param{w}, AdagradConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Optimizer{a, sgd(t, SGDConfig{})} {
		const want = "trainer: a cycle of the momentum, which the optimiser lacks"
		if _, err := NewSchedule(o, OneCycle{Steps: 9}); err == nil || err.Error() != want {
			t.Error(err)
		}
		if _, err := NewSchedule(o, OneCycle{Steps: 9, KeepMomentum: true}); err != nil {
			t.Error(err)
		}
	}
}

func TestCurveSettings(t *testing.T) {
	for want, c := range map[string]Curve{
		"step schedule: every 0 steps":                         StepLR{},
		"step schedule: a gamma of -1 is not in":               StepLR{Every: 1, Gamma: -1},
		"cosine schedule: in 0 steps":                          CosineAnnealing{},
		"cosine schedule: a least rate of -1":                  CosineAnnealing{Steps: 1, Min: -1},
		"warm-up of -1 steps":                                  Warmup{Steps: -1},
		"warm-up: a start of 2 is not in [0, 1]":               Warmup{Start: 2},
		"warm-up before a cycle, which has its own":            Warmup{Then: OneCycle{Steps: 5}},
		"cosine schedule: in -3 steps":                         Warmup{Then: CosineAnnealing{Steps: -3}},
		"one cycle of 0 steps":                                 OneCycle{},
		"one cycle: a rise of 1.5":                             OneCycle{Steps: 1, Rise: 1.5},
		"one cycle: divisors of -1 and 10000":                  OneCycle{Steps: 1, Div: -1},
		"one cycle: divisors of 25 and 0":                      OneCycle{Steps: 1, FinalDiv: Zero},
		"one cycle: a least momentum of 1 is not in [0, 1)":    OneCycle{Steps: 1, MinMomentum: 1},
		"one cycle: a greatest momentum of NaN is not in [0, ": OneCycle{Steps: 1, MaxMomentum: math.NaN()},
	} {
		o := sgd(t, SGDConfig{LR: 1, Momentum: .9})
		if _, err := NewSchedule(o, c); err == nil || !strings.HasPrefix(err.Error(), "trainer: "+want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
		if o.Rates()[0] != 1 {
			t.Errorf("%+v: the rate has become %v", c, o.Rates()[0])
		}
	}
}

func TestPlateauSettings(t *testing.T) {
	for want, c := range map[string]PlateauConfig{
		"a factor of 1 is not in [0, 1)": {Factor: 1},
		"a threshold of -1":              {Threshold: -1},
		"a least rate of -1":             {Min: -1},
		"an epsilon of NaN":              {Eps: math.NaN()},
		"a cooldown of -1 steps":         {Cooldown: -1},
	} {
		_, err := NewReduceLROnPlateau(sgd(t, SGDConfig{}), c)
		if err == nil || !strings.HasPrefix(err.Error(), "trainer: plateau: "+want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
}

// TestPlateauOfNaN reduces the rate when the loss is gone.
func TestPlateauOfNaN(t *testing.T) {
	o := sgd(t, SGDConfig{LR: 1})
	r, err := NewReduceLROnPlateau(o, PlateauConfig{Patience: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r.Step(math.NaN())
	}
	near(t, "rates", o.Rates(), []float64{.1, .2}, 1e-15)
}

func TestCosPi(t *testing.T) {
	for i := -400; i <= 400; i++ {
		x := float64(i) / 97
		if got, want := cosPi(x), math.Cos(math.Pi*x); !(math.Abs(got-want) <= 2e-15) {
			t.Errorf("cos(%vπ) is %.17g, want %.17g", x, got, want)
		}
	}
	for x, want := range []float64{1, -1, 1, -1} {
		if got := cosPi(float64(x)); got != want {
			t.Errorf("cos(%dπ) is %v", x, got)
		}
	}
}
