package trainer

import (
	"math"
	"strings"
	"testing"

	"peermesh/ops/tensor"
)

// defaults is where torch.optim.Adadelta goes with its defaults.
var defaults = trajectory{
	{.996839302294, -1.99683811755, .496837898007},
	{.992800113526, -1.99279786292, .492797445867},
	{.987932509188, -1.98792906419, .487928425809},
}

// TestAdadelta follows torch.optim.Adadelta.
func TestAdadelta(t *testing.T) {
	for name, c := range map[string]struct {
		config AdadeltaConfig
		want   trajectory
	}{
		"zero":     {AdadeltaConfig{}, defaults},
		"defaults": {AdadeltaConfig{LR: 1, Rho: .9, Eps: 1e-6}, defaults},
		"all settings": {AdadeltaConfig{LR: .5, Rho: .95, Eps: 1e-5, WeightDecay: .01}, trajectory{
			{.992986656156, -1.99294349671, .492936521209},
			{.984133082621, -1.98405058841, .483968464989},
			{.973510697102, -1.97338376713, .473178513394}}},
		// Without weight decay the rule is odd in the gradient: the moves, reversed.
		"maximize": {AdadeltaConfig{Maximize: true}, mirrored(defaults)},
		// A rate too small to move anything.
		"almost no rate": {AdadeltaConfig{LR: 1e-300}, trajectory{{1, -2, .5}, {1, -2, .5}, {1, -2, .5}}},
	} {
		t.Run(name, func(t *testing.T) {
			follow(t, c.want, func(params []*Param) (Optimizer, error) { return NewAdadelta(params, c.config) })
		})
	}
}

// mirrored reflects a trajectory in its start.
func mirrored(w trajectory) trajectory {
	for k := range w {
		for i, start := range []float64{1, -2, .5} {
			w[k][i] = 2*start - w[k][i]
		}
	}
	return w
}

// TestAdadeltaAtRest checks that elements whose gradient is 0 stay, at once and
// after having moved.
func TestAdadeltaAtRest(t *testing.T) {
	x, grad := []float32{3, 3}, []float32{0, 1}
	o, err := NewAdadelta([]*Param{{Value: tensor.Of(x), Grad: tensor.Of(grad)}}, AdadeltaConfig{})
	if err != nil {
		t.Fatal(err)
	}
	step(t, o)
	moved := x[1]
	grad[1] = 0
	step(t, o)
	if x[0] != 3 || moved >= 3 || x[1] != moved {
		t.Errorf("%v, and before %v", x, moved)
	}
}

func TestAdadeltaSettings(t *testing.T) {
	params := []*Param{{Value: tensor.New(tensor.Float32, 1)}}
	for _, c := range []struct {
		config AdadeltaConfig
		want   string
	}{
		{AdadeltaConfig{LR: -1}, "trainer: Adadelta: a learning rate of -1 is not in [0, +Inf]"},
		{AdadeltaConfig{Rho: 1.1}, "a rho of 1.1 is not in [0, 1]"},
		{AdadeltaConfig{Rho: -.1}, "a rho of -0.1"},
		{AdadeltaConfig{Rho: math.NaN()}, "a rho of NaN"},
		{AdadeltaConfig{Eps: -1e-6}, "an epsilon of -1e-06"},
		{AdadeltaConfig{WeightDecay: -1}, "a weight decay of -1"},
	} {
		if _, err := NewAdadelta(params, c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.config, err, c.want)
		}
	}
	if _, err := NewAdadelta(params, AdadeltaConfig{Rho: 1}); err != nil {
		t.Errorf("rho of 1: %v", err)
	}
}
