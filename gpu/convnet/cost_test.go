package convnet

import "testing"

// A cost is what a step of a sample comes to: multiplications with an addition each, and
// numbers that its kernels read and write once, if every sum's terms come from a cache.
type cost struct{ products, numbers int }

// costs are those of a network's step of one sample, forward and backward.
func costs(stages []*stage) (c cost) {
	for i, s := range stages {
		inputs, weights := s.inputs, s.channels*s.inputs // of a linear layer
		products := weights
		if s.k > 0 {
			inputs, weights = s.inputs*s.h*s.w, s.channels*s.inputs*s.k*s.k
			products = weights * s.convolved()
		}
		passes := 3 // forward, of the weights, of the input
		if i == 0 {
			passes = 2 // nobody asks for the input's
		}
		before := s.channels
		if s.k > 0 {
			before *= s.convolved()
		}
		c.products += passes * products
		c.numbers += passes*(inputs+before+weights) + 2*s.outs()
	}
	return c
}

// TestCost holds the figures of the package's guide to the networks that it has.
func TestCost(t *testing.T) {
	for _, n := range []struct {
		name   string
		stages []*stage
		want   cost
		params int
	}{
		{"convnet", convNet(), cost{9_043_968, 1_056_946}, 300426},
		{"tutorial", tutorial(), cost{1_297_500, 91_178}, 21840},
	} {
		params := 0
		for _, s := range n.stages {
			weights := s.channels * s.inputs
			if s.k > 0 {
				weights *= s.k * s.k
			}
			params += weights + s.channels
		}
		c := costs(n.stages)
		t.Logf("%s: %d parameters; a sample's step has %d products and moves %d bytes", n.name, params, c.products, 4*c.numbers)
		if params != n.params || c != n.want {
			t.Errorf("%s: %d parameters, %+v, want %d, %+v", n.name, params, c, n.params, n.want)
		}
	}
}
