package trainer

import (
	"math"
	"strings"
	"testing"

	"peermesh/ops/tensor"
)

// TestSettings gives settings that cannot be; those of SGD and Adadelta are in
// tests of their own.
func TestSettings(t *testing.T) {
	params := []*Param{{Value: tensor.New(tensor.Float32, 1)}}
	nan := math.NaN()
	for want, build := range map[string]func() (Optimizer, error){
		"Adam: a learning rate of -1 is not in [0, +Inf]": func() (Optimizer, error) { return NewAdam(params, AdamConfig{LR: -1}) },
		"Adam: a beta1 of 1 is not in [0, 1)":             func() (Optimizer, error) { return NewAdam(params, AdamConfig{Beta1: 1}) },
		"Adam: a beta2 of NaN":                            func() (Optimizer, error) { return NewAdam(params, AdamConfig{Beta2: nan}) },
		"Adam: an epsilon of -1":                          func() (Optimizer, error) { return NewAdam(params, AdamConfig{Eps: -1}) },
		"Adam: a weight decay of -1":                      func() (Optimizer, error) { return NewAdam(params, AdamConfig{WeightDecay: -1}) },
		"AdamW: a beta1 of -0.5":                          func() (Optimizer, error) { return NewAdamW(params, AdamWConfig{Beta1: -.5}) },
		"AdamW: a weight decay of -1":                     func() (Optimizer, error) { return NewAdamW(params, AdamWConfig{WeightDecay: -1}) },
		"Adagrad: a learning rate of NaN":                 func() (Optimizer, error) { return NewAdagrad(params, AdagradConfig{LR: nan}) },
		"Adagrad: a learning rate decay of -1":            func() (Optimizer, error) { return NewAdagrad(params, AdagradConfig{LRDecay: -1}) },
		"Adagrad: an initial sum of -1":                   func() (Optimizer, error) { return NewAdagrad(params, AdagradConfig{Initial: -1}) },
		"Adagrad: an epsilon of -1":                       func() (Optimizer, error) { return NewAdagrad(params, AdagradConfig{Eps: -1}) },
		"RMSprop: an alpha of 1.5 is not in [0, 1]":       func() (Optimizer, error) { return NewRMSprop(params, RMSpropConfig{Alpha: 1.5}) },
		"RMSprop: a momentum of -1":                       func() (Optimizer, error) { return NewRMSprop(params, RMSpropConfig{Momentum: -1}) },
		"RMSprop: an epsilon of -1":                       func() (Optimizer, error) { return NewRMSprop(params, RMSpropConfig{Eps: -1}) },
		"LAMB: a beta1 of 1":                              func() (Optimizer, error) { return NewLAMB(params, LAMBConfig{Beta1: 1}) },
		"LAMB: a weight decay of NaN":                     func() (Optimizer, error) { return NewLAMB(params, LAMBConfig{WeightDecay: nan}) },
		"Lion: a beta2 of 1":                              func() (Optimizer, error) { return NewLion(params, LionConfig{Beta2: 1}) },
		"Lion: a weight decay of -1":                      func() (Optimizer, error) { return NewLion(params, LionConfig{WeightDecay: -1}) },
	} {
		if _, err := build(); err == nil || !strings.HasPrefix(err.Error(), "trainer: "+want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestNotANumber lets a gradient of NaN be seen in the parameter, whatever the
// optimiser, and in no other element.
func TestNotANumber(t *testing.T) {
	for name, build := range optimizers {
		if name == "LAMB" {
			continue // the norm takes it to all
		}
		x := []float64{1, 1}
		o, err := build([]*Param{{Value: tensor.Of(x), Grad: tensor.Of([]float64{math.NaN(), 1})}})
		if err != nil {
			t.Fatal(err)
		}
		step(t, o)
		if !math.IsNaN(x[0]) || math.IsNaN(x[1]) {
			t.Errorf("%s: %v", name, x)
		}
	}
}

// TestConstantGradient has no variance, which rounding may make a negative one.
func TestConstantGradient(t *testing.T) {
	x, grad := make([]float32, 100), make([]float32, 100)
	for i := range grad {
		grad[i] = 1 / float32(i+3)
	}
	o, err := NewRMSprop([]*Param{{Value: tensor.Of(x), Grad: tensor.Of(grad)}},
		RMSpropConfig{LR: 1e-9, Alpha: .5, Centered: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		step(t, o)
	}
	for i, v := range x {
		if v != v || v >= 0 {
			t.Fatalf("element %d is %v", i, v)
		}
	}
}

// TestTrust lets LAMB move a parameter by LR of its length, whatever its
// gradient's, and one of zeros at all.
func TestTrust(t *testing.T) {
	for _, c := range []struct {
		start [2]float64
		scale float64
		want  float64
	}{
		{[2]float64{3, 4}, 1, .5},
		{[2]float64{3, 4}, 1e6, .5},
		{[2]float64{300, 400}, 1, 50},
		{[2]float64{0, 0}, 1, .1 * math.Sqrt2}, // each element by LR
	} {
		x := c.start
		p := &Param{Value: tensor.Of(x[:]), Grad: tensor.Of([]float64{c.scale, -2 * c.scale})}
		o, err := NewLAMB([]*Param{p}, LAMBConfig{LR: .1})
		if err != nil {
			t.Fatal(err)
		}
		step(t, o)
		if moved := math.Hypot(x[0]-c.start[0], x[1]-c.start[1]); math.Abs(moved-c.want) > 1e-5*c.want {
			t.Errorf("%v, gradient of %v: moved by %v, want %v", c.start, c.scale, moved, c.want)
		}
	}
}

// TestLionAtRest moves nothing without a gradient, and by no more than LR with.
func TestLionAtRest(t *testing.T) {
	x := []float64{1, 1, 1}
	o, err := NewLion([]*Param{{Value: tensor.Of(x), Grad: tensor.Of([]float64{0, 1e-30, -1e30})}}, LionConfig{LR: .25})
	if err != nil {
		t.Fatal(err)
	}
	step(t, o)
	near(t, "parameter", x, []float64{1, .75, 1.25}, 0)
}
