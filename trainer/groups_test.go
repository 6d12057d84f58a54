package trainer

import (
	"math"
	"slices"
	"strings"
	"testing"

	"peermesh/ops/tensor"
)

// one is a parameter of one element and its gradient.
func one(name string, x, grad float64) (*Param, []float64) {
	v := []float64{x}
	return &Param{Name: name, Value: tensor.Of(v), Grad: tensor.Of([]float64{grad})}, v
}

func TestGroupsHaveTheirOwnRates(t *testing.T) {
	a, x := one("a", 1, 1)
	b, y := one("b", 1, 1)
	o, err := NewSGD([]*Param{a}, SGDConfig{LR: .5})
	if err == nil {
		err = o.AddParams([]*Param{b}, SGDConfig{LR: .25, WeightDecay: 1})
	}
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.Rates(), []float64{.5, .25}) || !slices.Equal(o.Momenta(), []float64{0, 0}) {
		t.Errorf("rates %v, momenta %v", o.Rates(), o.Momenta())
	}
	step(t, o)
	if x[0] != .5 || y[0] != .5 {
		t.Errorf("at %v and %v, want .5 and 1 - .25·(1+1)", x[0], y[0])
	}
	o.Rates()[1] = .125
	step(t, o)
	if x[0] != 0 || y[0] != .3125 {
		t.Errorf("with another rate at %v and %v, want 0 and .5 - .125·(1+.5)", x[0], y[0])
	}
}

// TestRefusedGroup adds groups that cannot be, which must leave no trace.
func TestRefusedGroup(t *testing.T) {
	a, x := one("a", 1, 1)
	b, y := one("b", 1, 1)
	o, err := NewAdam([]*Param{a}, AdamConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for want, params := range map[string][]*Param{
		`trainer: Adam: parameter "a" is given twice`: {b, a},
		`trainer: Adam: parameter "b" is given twice`: {b, b},
		"trainer: Adam: no parameters":                nil,
		"trainer: Adam: a parameter is nil":           {b, nil},
	} {
		if err := o.AddParams(params, AdamConfig{}); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := o.AddParams([]*Param{b}, AdamConfig{Beta2: 1}); err == nil {
		t.Error("a beta2 of 1 is fine")
	}
	step(t, o)
	if len(o.Rates()) != 1 || len(o.Momenta()) != 1 || x[0] == 1 || y[0] != 1 {
		t.Errorf("rates %v, momenta %v, at %v and %v", o.Rates(), o.Momenta(), x, y)
	}
}

// TestSettingsGoneBad writes numbers that no setting can have between steps.
func TestSettingsGoneBad(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(o Optimizer)
		want  string
	}{
		"negative rate": {func(o Optimizer) { o.Rates()[1] = -1 }, "a learning rate of -1 is not in [0, +Inf]"},
		"no rate":       {func(o Optimizer) { o.Rates()[1] = math.NaN() }, "a learning rate of NaN"},
		"beta1":         {func(o Optimizer) { o.Momenta()[1] = 1 }, "a beta1 of 1 is not in [0, 1)"},
		"steps":         {func(o Optimizer) { stateNamed(t, o, "b.step")[0] = -1 }, `parameter "b" has taken -1 steps`},
	} {
		a, x := one("a", 1, 1)
		b, _ := one("b", 1, 1)
		o, err := NewAdam([]*Param{a}, AdamConfig{})
		if err == nil {
			err = o.AddParams([]*Param{b}, AdamConfig{})
		}
		if err != nil {
			t.Fatal(err)
		}
		c.spoil(o)
		if err := o.Step(); err == nil || !strings.HasPrefix(err.Error(), "trainer: Adam step: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if x[0] != 1 {
			t.Errorf("%s: another parameter has moved", name)
		}
	}
}

// stateNamed is the int64 tensor of that name in an optimiser's state.
func stateNamed(t *testing.T, o Optimizer, name string) []int64 {
	t.Helper()
	for _, p := range o.State() {
		if x, ok := tensor.Data[int64](p.Value); ok && p.Name == name {
			return x
		}
	}
	t.Fatalf("no %q", name)
	return nil
}

// TestLateMomentum turns on a momentum that there is no memory for, and off one
// that there is.
func TestLateMomentum(t *testing.T) {
	p, x := one("w", 1, 1)
	for name, build := range map[string]func(momentum float64) (Optimizer, error){
		"SGD":     func(m float64) (Optimizer, error) { return NewSGD([]*Param{p}, SGDConfig{LR: .5, Momentum: m}) },
		"RMSprop": func(m float64) (Optimizer, error) { return NewRMSprop([]*Param{p}, RMSpropConfig{Momentum: m}) },
	} {
		o, err := build(0)
		if err != nil {
			t.Fatal(err)
		}
		o.Momenta()[0] = .9
		if err := o.Step(); err == nil || err.Error() != "trainer: "+name+" step: a momentum of 0.9, after none at first" {
			t.Error(err)
		}
		if o, err = build(.9); err != nil {
			t.Fatal(err)
		}
		o.Momenta()[0] = 0
		step(t, o)
		if x[0] >= 1 {
			t.Errorf("%s: at %v", name, x[0])
		}
		x[0] = 1
	}
}

// TestZero compares a decay of Zero with none at all.
func TestZero(t *testing.T) {
	a, x := one("a", 1, .5)
	b, y := one("b", 1, .5)
	w, err := NewAdamW([]*Param{a}, AdamWConfig{WeightDecay: Zero, Beta1: Zero})
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewAdam([]*Param{b}, AdamConfig{Beta1: Zero})
	if err != nil {
		t.Fatal(err)
	}
	step(t, w)
	step(t, o)
	if x[0] != y[0] || x[0] == 1 || w.Momenta()[0] != 0 {
		t.Errorf("%v and %v, beta1 %v", x[0], y[0], w.Momenta()[0])
	}
}

func TestPower(t *testing.T) {
	for _, x := range []float64{0, .1, .9, .999, 1, 1.5, -2} {
		for _, n := range []int64{0, 1, 2, 3, 10, 1000} {
			if got, want := power(x, n), math.Pow(x, float64(n)); !(math.Abs(got-want) <= 1e-13*math.Abs(want)) {
				t.Errorf("%v to the %d is %v, want %v", x, n, got, want)
			}
		}
	}
	if got := power(.999, math.MaxInt64); got != 0 {
		t.Errorf("in the end %v", got)
	}
}
