package trainer

import (
	"math"
	"strings"
	"testing"

	"peermesh/ops/tensor"
)

// TestSGD follows torch.optim.SGD.
func TestSGD(t *testing.T) {
	for name, c := range map[string]struct {
		config SGDConfig
		want   trajectory
	}{
		"plain": {SGDConfig{LR: .1}, trajectory{
			{.99, -1.98, .47}, {.97, -1.94, .41}, {.94, -1.88, .32}}},
		"momentum": {SGDConfig{LR: .01, Momentum: .5}, trajectory{
			{.999, -1.998, .497}, {.9965, -1.993, .4895}, {.99225, -1.9845, .47675}}},
		"dampening": {SGDConfig{LR: .1, Momentum: .9, Dampening: .1}, trajectory{
			{.99, -1.98, .47}, {.963, -1.926, .389}, {.9117, -1.8234, .2351}}},
		"Nesterov": {SGDConfig{LR: .1, Momentum: .9, Nesterov: true}, trajectory{
			{.981, -1.962, .443}, {.9349, -1.8698, .3047}, {.85441, -1.70882, .06323}}},
		"weight decay": {SGDConfig{LR: .1, Momentum: .9, WeightDecay: .01}, trajectory{
			{.989, -1.978, .4695}, {.958111, -1.916222, .3815805}, {.899352789, -1.798705578, .2120713695}}},
		// By hand: the plain moves, reversed.
		"maximize": {SGDConfig{LR: .1, Maximize: true}, trajectory{
			{1.01, -2.02, .53}, {1.03, -2.06, .59}, {1.06, -2.12, .68}}},
		// The gradient is negated, the decay is not: 1 - .1·(-.1 + .1·1) = 1.
		"maximize and decay": {SGDConfig{LR: .1, WeightDecay: .1, Maximize: true}, trajectory{
			{1, -2, .525}, {1.01, -2.02, .57975}, {1.0299, -2.0598, .6639525}}},
		// Without momentum there is nothing to dampen.
		"dampening alone": {SGDConfig{LR: .1, Dampening: .5}, trajectory{
			{.99, -1.98, .47}, {.97, -1.94, .41}, {.94, -1.88, .32}}},
		// The default rate is a hundredth of .1.
		"zero": {SGDConfig{}, trajectory{
			{.9999, -1.9998, .4997}, {.9997, -1.9994, .4991}, {.9994, -1.9988, .4982}}},
	} {
		t.Run(name, func(t *testing.T) {
			follow(t, c.want, func(params []*Param) (Optimizer, error) { return NewSGD(params, c.config) })
		})
	}
}

func TestSGDSettings(t *testing.T) {
	params := []*Param{{Value: tensor.New(tensor.Float32, 1)}}
	nan := math.NaN()
	for _, c := range []struct {
		config SGDConfig
		want   string
	}{
		{SGDConfig{LR: -1}, "trainer: SGD: a learning rate of -1 is not in [0, +Inf]"},
		{SGDConfig{LR: nan}, "a learning rate of NaN"},
		{SGDConfig{Momentum: -.9}, "a momentum of -0.9"},
		{SGDConfig{WeightDecay: -1e-9}, "a weight decay of -1e-09"},
		{SGDConfig{Momentum: .9, Dampening: nan}, "a dampening of NaN"},
		{SGDConfig{Nesterov: true}, "Nesterov needs momentum and no dampening"},
		{SGDConfig{Nesterov: true, Momentum: .9, Dampening: .1}, "Nesterov needs momentum and no dampening"},
	} {
		if _, err := NewSGD(params, c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.config, err, c.want)
		}
	}
}
