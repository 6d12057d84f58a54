package layers

import (
	"math"
	"slices"
	"testing"
)

// A specimen is a layer, made anew for each network, and the shape of its input.
type specimen struct {
	name string
	in   Shape
	make func() Layer
	raw  bool // it looks up rows
}

// specimens are every layer, in forms that differ in what they do.
var specimens = []specimen{
	{"linear", Shape{5, 7}, func() Layer { return &Linear{Out: 30} }, false},
	{"linear of one", Shape{1}, func() Layer { return &Linear{Out: 3} }, false},
	{"linear without bias", Shape{40}, func() Layer { return &Linear{Out: 3, NoBias: true} }, false},
	{"conv", Shape{3, 9, 8}, func() Layer { return &Conv2d{Out: 5, Kernel: 3} }, false},
	{"conv padded", Shape{2, 6, 5}, func() Layer { return &Conv2d{Out: 3, Kernel: 5, Padding: 2, NoBias: true} }, false},
	{"conv in strides", Shape{2, 7, 10}, func() Layer { return &Conv2d{Out: 4, Kernel: 3, Stride: 2, Padding: 1} }, false},
	{"conv of one in strides", Shape{3, 7, 6}, func() Layer { return &Conv2d{Out: 4, Kernel: 1, Stride: 2} }, false},
	{"conv in long strides", Shape{2, 11, 12}, func() Layer { return &Conv2d{Out: 2, Kernel: 2, Stride: 5, Padding: 1} }, false},
	{"conv to a pixel", Shape{2, 3, 3}, func() Layer { return &Conv2d{Out: 2, Kernel: 3} }, false},
	{"max pool", Shape{2, 6, 7}, func() Layer { return &MaxPool2d{Kernel: 3, Stride: 2, Padding: 1} }, false},
	{"avg pool", Shape{2, 6, 7}, func() Layer { return &AvgPool2d{Kernel: 3, Stride: 2, Padding: 1} }, false},
	{"global avg pool", Shape{3, 4, 5}, func() Layer { return &GlobalAvgPool2d{} }, false},
	{"relu", Shape{40}, func() Layer { return &ReLU{} }, false},
	{"gelu", Shape{40}, func() Layer { return &GELU{} }, false},
	{"gelu tanh", Shape{40}, func() Layer { return &GELU{Tanh: true} }, false},
	{"dropout", Shape{40}, func() Layer { return &Dropout{P: 0.4} }, false},
	{"dropout of channels", Shape{6, 3, 3}, func() Layer { return &Dropout{P: 0.4, Channel: true} }, false},
	{"batch norm", Shape{3, 4, 2}, func() Layer { return &BatchNorm2d{} }, false},
	{"layer norm", Shape{3, 6}, func() Layer { return &LayerNorm{} }, false},
	{"embedding", Shape{4}, func() Layer { return &Embedding{Rows: 5, Width: 20} }, true},
	{"position", Shape{3, 4}, func() Layer { return &Position{} }, false},
	{"attention", Shape{6, 8}, func() Layer { return &SelfAttention{Heads: 2} }, false},
	{"attention to all", Shape{12, 8}, func() Layer { return &SelfAttention{Heads: 1, All: true} }, false},
	{"residual", Shape{6}, func() Layer { return &Residual{Body: Sequential{&GELU{}, &Linear{Out: 6}}} }, false},
	{"residual with a shortcut", Shape{6}, func() Layer {
		return &Residual{Body: &Linear{Out: 4}, Shortcut: Named{"short", &Linear{Out: 4}}}
	}, false},
	{"tied", Shape{4}, func() Layer {
		e := &Embedding{Rows: 5, Width: 6}
		return Sequential{e, &LayerNorm{}, &Linear{Out: 5, Tied: e}}
	}, true},
	{"flatten", Shape{2, 3, 4}, func() Layer { return Sequential{Flatten{}, &Linear{Out: 2}} }, false},
}

// input is a batch for the specimen, away from the kinks of ReLU and max pool.
func (s specimen) input(n int) []float32 {
	x := noise(3, n*s.in.Len())
	for i, v := range x {
		switch {
		case s.raw:
			x[i] = float32(int(math.Abs(float64(v) * 1.7))) // some rows twice, others never
			x[i] = min(x[i], 4)
		default: // no two are alike, none is near zero
			x[i] = float32(math.Round(float64(v)*4))/4 + 0.1 + float32(i%7)/90
		}
	}
	return x
}

// Backward is forward's derivative, by every parameter and by the input.
func TestGradients(t *testing.T) {
	for _, s := range specimens {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for _, portable := range []bool{false, true} {
				n := build(t, Config{Threads: 2, Portable: portable}, s.in, s.make(), s.raw)
				n.scramble()
				checkGradients(t, n, s.input(5))
			}
		})
	}
}

// One, two, three and five threads give the same bits, forward and backward, and a
// sample in evaluation the same bits in any batch.
func TestThreadsDoNotMatter(t *testing.T) {
	for _, s := range specimens {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			x := s.input(37)
			var y, dx []float32
			var grads [][]float32
			for _, threads := range []int{1, 2, 3, 5} {
				n := build(t, Config{Seed: 5, Threads: threads}, s.in, s.make(), s.raw)
				gotY, gotDX := n.backward(t, x, noise(9, 37*n.out.Len()))
				if threads == 1 {
					y, dx = gotY, gotDX
				}
				if !slices.Equal(y, gotY) || !slices.Equal(dx, gotDX) {
					t.Errorf("%d threads: other results", threads)
				}
				for i, w := range n.weights {
					if threads == 1 {
						grads = append(grads, slices.Clone(w.Grad))
					}
					if !slices.Equal(grads[i], w.Grad) {
						t.Errorf("%d threads: another gradient of %s", threads, w.Param.Name)
					}
				}
			}
		})
	}
}

// A gradient that nobody wants is not computed, and the others stay the same.
func TestRawInput(t *testing.T) {
	for _, s := range specimens {
		if s.raw {
			continue
		}
		n, raw := build(t, Config{}, s.in, s.make(), false), build(t, Config{}, s.in, s.make(), true)
		x, dy := s.input(3), noise(9, 3*n.out.Len())
		n.backward(t, x, dy)
		raw.backward(t, x, dy)
		for i, w := range n.weights {
			if !slices.Equal(w.Grad, raw.weights[i].Grad) {
				t.Errorf("%s: another gradient of %s", s.name, w.Param.Name)
			}
		}
	}
}

// Once a layer has seen its largest batch, it allocates nothing.
func TestAllocations(t *testing.T) {
	for _, s := range specimens {
		n := build(t, Config{Threads: 1}, s.in, s.make(), s.raw)
		b := Batch{X: s.input(20), Targets: noise(9, 20*n.out.Len())}
		step := func() {
			if _, err := n.ForwardBackward(background, b, nil); err != nil {
				t.Fatal(err)
			}
		}
		step()
		if a := testing.AllocsPerRun(5, step); a > 0 {
			t.Errorf("%s: %v allocations a step", s.name, a)
		}
	}
}
