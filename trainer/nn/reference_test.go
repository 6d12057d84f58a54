package nn

import (
	"math"
	"testing"

	"peermesh/ops/tensor"
	"peermesh/trainer/nn/internal/draw"
)

// The reference computes a loss in float64 by the definitions, layer by layer, in
// the order that the networks are published in: where Net pools or drops at
// another place because that is the same, this does not.

// A volume is one sample between layers.
type volume struct {
	shape
	x []float64
}

func newVolume(s shape) volume { return volume{s, make([]float64, s.len())} }

func (v volume) at(c, y, x int) *float64 { return &v.x[(c*v.h+y)*v.w+x] }

// layers are what a reference network is made of.
type layers struct {
	net    *Net
	params [][]float64
	sample int
	stage  int // of the next learnt layer
	v      volume
}

func (l *layers) weights() (w, b []float64) {
	l.stage++
	return l.params[2*l.stage-2], l.params[2*l.stage-1]
}

// wide are the parameters in float64.
func wide(n *Net) [][]float64 {
	var all [][]float64
	for _, p := range n.Params() {
		x, _ := tensor.Data[float32](p.Value)
		y := make([]float64, len(x))
		for i, v := range x {
			y[i] = float64(v)
		}
		all = append(all, y)
	}
	return all
}

func (l *layers) conv(c, k int) {
	w, b := l.weights()
	in, out := l.v, newVolume(shape{c, l.v.h - k + 1, l.v.w - k + 1})
	for o := range c {
		for y := range out.h {
			for x := range out.w {
				s := b[o]
				for i := range in.c {
					for j := range k * k {
						s += w[(o*in.c+i)*k*k+j] * *in.at(i, y+j/k, x+j%k)
					}
				}
				*out.at(o, y, x) = s
			}
		}
	}
	l.v = out
}

func (l *layers) linear(outs int) {
	w, b := l.weights()
	out := newVolume(shape{outs, 1, 1})
	for o := range out.x {
		out.x[o] = b[o]
		for i, v := range l.v.x {
			out.x[o] += w[o*len(l.v.x)+i] * v
		}
	}
	l.v = out
}

func (l *layers) maxPool() {
	out := newVolume(shape{l.v.c, l.v.h / 2, l.v.w / 2})
	for c := range out.c {
		for y := range out.h {
			for x := range out.w {
				m := math.Inf(-1)
				for j := range 4 {
					m = max(m, *l.v.at(c, 2*y+j/2, 2*x+j%2))
				}
				*out.at(c, y, x) = m
			}
		}
	}
	l.v = out
}

func (l *layers) relu() {
	for i, v := range l.v.x {
		l.v.x[i] = max(v, 0)
	}
}

// dropout multiplies by the mask that the step before last drew: what dropout
// makes of ones.
func (l *layers) dropout(p float64, channels bool) {
	n, plane := len(l.v.x), 1
	if channels {
		n, plane = l.v.c, l.v.h*l.v.w
	}
	mask := make([]float32, n)
	for i := range mask {
		mask[i] = 1
	}
	if !l.net.config.NoDropout {
		dropout(mask, 1, p, l.net.drops.At(0).At(uint64(l.stage-1)).At(uint64(l.sample)))
	}
	for i := range l.v.x {
		l.v.x[i] *= float64(mask[i/plane])
	}
}

func referenceConvNet(l *layers) {
	l.conv(16, 3)
	l.relu()
	l.conv(32, 3)
	l.relu()
	l.maxPool()
	l.dropout(0.1, false)
	l.linear(64)
	l.relu()
	l.dropout(0.25, false)
	l.linear(10)
}

func referenceTutorial(l *layers) {
	l.conv(10, 5)
	l.maxPool()
	l.relu()
	l.conv(20, 5)
	l.dropout(0.5, true)
	l.maxPool()
	l.relu()
	l.linear(50)
	l.relu()
	l.dropout(0.5, false)
	l.linear(10)
}

// referenceLoss is the mean loss of a batch in the first step.
func referenceLoss(n *Net, params [][]float64, in shape, forward func(l *layers), b Batch) float64 {
	loss := 0.0
	for i, label := range b.Y {
		l := &layers{net: n, params: params, sample: i, v: newVolume(in)}
		for j := range l.v.x {
			l.v.x[j] = float64(b.X[i*n.pixels+j])
		}
		forward(l)
		sum := 0.0
		for _, z := range l.v.x {
			sum += math.Exp(z - l.v.x[label])
		}
		loss += math.Log(sum)
	}
	return loss / float64(len(b.Y))
}

// A check is a network, in small form, and its reference.
type check struct {
	name    string
	in      shape
	build   func(b *builder)
	forward func(l *layers)
}

var checks = []check{
	{"linear", shape{1, 3, 11}, func(b *builder) {
		b.linear("fc", 7, options{})
	}, func(l *layers) { l.linear(7) }},
	{"linear relu", shape{1, 1, 70}, func(b *builder) {
		b.linear("fc1", 33, options{relu: true})
		b.linear("fc2", 3, options{})
	}, func(l *layers) { l.linear(33); l.relu(); l.linear(3) }},
	{"linear dropout", shape{1, 1, 30}, func(b *builder) {
		b.linear("fc1", 27, options{relu: true, drop: 0.4})
		b.linear("fc2", 5, options{})
	}, func(l *layers) { l.linear(27); l.relu(); l.dropout(0.4, false); l.linear(5) }},
	{"conv", shape{2, 5, 6}, func(b *builder) {
		b.conv("conv", 3, 2, options{})
		b.linear("fc", 4, options{})
	}, func(l *layers) { l.conv(3, 2); l.linear(4) }},
	{"conv relu, wide", shape{3, 4, 31}, func(b *builder) {
		b.conv("conv", 5, 3, options{relu: true})
		b.linear("fc", 4, options{})
	}, func(l *layers) { l.conv(5, 3); l.relu(); l.linear(4) }},
	{"conv pool, odd", shape{1, 7, 9}, func(b *builder) {
		b.conv("conv", 2, 3, options{pool: true})
		b.linear("fc", 4, options{})
	}, func(l *layers) { l.conv(2, 3); l.maxPool(); l.linear(4) }},
	{"two convs", shape{1, 9, 8}, func(b *builder) {
		b.conv("conv1", 6, 3, options{relu: true})
		b.conv("conv2", 9, 2, options{pool: true, relu: true, drop: 0.5, channel: true})
		b.linear("fc", 4, options{})
	}, func(l *layers) {
		l.conv(6, 3)
		l.relu()
		l.conv(9, 2)
		l.dropout(0.5, true)
		l.maxPool()
		l.relu()
		l.linear(4)
	}},
	{"ConvNet", shape{1, 6, 28}, convNet, referenceConvNet},
	{"tutorial", shape{1, 16, 20}, tutorial, referenceTutorial},
}

// step is half the distance of central differences in float64, whose error is of the order of
// step² and of float64's rounding over step: 10⁻¹⁰ at most. So near, no ReLU and no maximum
// turns in between.
const step = 0x1p-20

// Every layer, alone and in the networks, has the loss that the definitions give
// and the gradients that differences of that loss give, on both engines.
func TestGradients(t *testing.T) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			var nets []*Net
			for _, portable := range []bool{false, true} {
				n, err := newNet(Config{Seed: 3, Portable: portable}, c.in, c.build)
				if err != nil {
					t.Fatal(err)
				}
				nets = append(nets, n)
			}
			checkGradients(t, c, nets)
		})
	}
}

// tolerance is what float32's rounding leaves of a gradient, relative to the largest of its
// tensor: 2⁻²⁴ for each term of the longest sums that lead to it, of which these networks have
// below 700 (a batch's pixels or a layer's inputs, forward and back).
const tolerance = 700 * 0x1p-24

func checkGradients(t *testing.T, c check, nets []*Net) {
	first := nets[0]
	b, params := noise(2, first.pixels, first.classes), wide(first)
	loss := func() float64 { return referenceLoss(first, params, c.in, c.forward, b) }
	want := loss()
	for _, n := range nets {
		got, err := n.ForwardBackward(t.Context(), b, nil)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got-want) > 1e-6*(1+want) {
			t.Fatalf("loss %v, want %v", got, want)
		}
	}
	for i, p := range first.Params() {
		random := draw.Stream(len(params[i]))
		size, slopes := 0.0, map[uint64]float64{}
		for range min(6, len(params[i])) {
			j := random.Next() % uint64(len(params[i]))
			slopes[j] = slope(&params[i][j], loss)
			size = max(size, math.Abs(slopes[j]))
		}
		for _, n := range nets {
			grad, _ := tensor.Data[float32](n.Params()[i].Grad)
			for j, want := range slopes {
				if off := math.Abs(want - float64(grad[j])); !(off <= tolerance*size) {
					t.Errorf("%s[%d]: gradient %v, slope %v: off by %.2g of %.2g", p.Name, j, grad[j], want, off/size, size)
				}
			}
		}
	}
}

// slope is that of f by x, by central differences.
func slope(x *float64, f func() float64) float64 {
	old := *x
	*x = old + step
	up := f()
	*x = old - step
	down := f()
	*x = old
	return (up - down) / (2 * step)
}
