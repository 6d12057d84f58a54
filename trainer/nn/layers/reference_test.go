package layers

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"
)

// Layers beside their definitions, in float64 and by the plainest loops, over forms drawn at
// random: the golden files hold a few forms to PyTorch, and this holds forward to the formula
// wherever padding, strides and odd sizes meet. See derivative_test.go for backward.

// values are parameters' elements in float64, by name; of one that a layer lacks, nil.
type values map[string][]float64

func (n *Net) values() values {
	v := make(values)
	for _, w := range n.weights {
		v[w.Param.Name] = wide(w.Value)
	}
	return v
}

func wide(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// A window is where a kernel lies over an image.
type window struct{ h, w, kernel, stride, padding int }

// out is the size of what windows leave.
func (g window) out() (h, w int) {
	size := func(n int) int { return (n+2*g.padding-g.kernel)/g.stride + 1 }
	return size(g.h), size(g.w)
}

// each calls do with the places in an h×w plane that are under the kernel at (r, c), and with
// their places in the kernel.
func (g window) each(r, c int, do func(at, tap int)) {
	for i := range g.kernel {
		for j := range g.kernel {
			y, x := r*g.stride+i-g.padding, c*g.stride+j-g.padding
			if y >= 0 && y < g.h && x >= 0 && x < g.w {
				do(y*g.w+x, i*g.kernel+j)
			}
		}
	}
}

// convolve is a convolution of a sample of channels planes.
func (g window) convolve(x, weight, bias []float64, channels, outs int) (y []float64) {
	h, w := g.out()
	area := g.kernel * g.kernel
	for o := range outs {
		for at := range h * w {
			sum := 0.0
			if bias != nil {
				sum = bias[o]
			}
			for c := range channels {
				g.each(at/w, at%w, func(from, tap int) {
					sum += x[c*g.h*g.w+from] * weight[(o*channels+c)*area+tap]
				})
			}
			y = append(y, sum)
		}
	}
	return y
}

// pool folds each window of each plane.
func (g window) pool(x []float64, channels int, start float64, fold func(a, b float64) float64, scale float64) (y []float64) {
	h, w := g.out()
	for c := range channels {
		for at := range h * w {
			v := start
			g.each(at/w, at%w, func(from, _ int) { v = fold(v, x[c*g.h*g.w+from]) })
			y = append(y, v*scale)
		}
	}
	return y
}

// A trial is a layer, its input's shape, and its definition: for one sample, or where samples
// depend on each other for the whole batch.
type trial struct {
	in     Shape
	layer  Layer
	define func(v values, x []float64) []float64
	whole  func(v values, x []float64) []float64
}

// trials draws one of each kind.
func trials(r *rand.Rand) map[string]trial {
	g := window{h: 3 + r.IntN(12), w: 3 + r.IntN(12), kernel: 1 + r.IntN(3), stride: 1 + r.IntN(3)}
	g.padding = r.IntN(g.kernel/2 + 1)
	channels, outs, bias := 1+r.IntN(4), 1+r.IntN(9), r.IntN(2) == 0
	image := Shape{channels, g.h, g.w}
	rows, width := 1+r.IntN(5), 1+r.IntN(40)
	heads, positions := 1+r.IntN(3), 1+r.IntN(9)
	features, toAll := heads*(1+r.IntN(6)), r.IntN(2) == 0
	all := pools(image, g)
	maps.Copy(all, map[string]trial{
		"conv": {in: image, layer: &Conv2d{Out: outs, Kernel: g.kernel, Stride: g.stride, Padding: g.padding, NoBias: !bias},
			define: func(v values, x []float64) []float64 {
				return g.convolve(x, v["weight"], v["bias"], channels, outs)
			}},
		"linear": {in: Shape{rows, width}, layer: &Linear{Out: outs, NoBias: !bias},
			define: func(v values, x []float64) []float64 { return affine(x, v["weight"], v["bias"], width) }},
		"layer norm": {in: Shape{rows, width}, layer: &LayerNorm{},
			define: func(v values, x []float64) []float64 { return normalize(x, v["weight"], v["bias"]) }},
		"gelu": {in: Shape{width}, layer: &GELU{}, define: func(_ values, x []float64) (y []float64) {
			for _, v := range x {
				y = append(y, v/2*(1+math.Erf(v/math.Sqrt2)))
			}
			return y
		}},
		"attention": {in: Shape{positions, features}, layer: &SelfAttention{Heads: heads, All: toAll},
			define: func(v values, x []float64) []float64 { return attend(v, x, heads, features, toAll) }},
	})
	return all
}

// pools are the layers that fold windows of an image without parameters.
func pools(image Shape, g window) map[string]trial {
	return map[string]trial{
		"max pool": {in: image, layer: &MaxPool2d{Kernel: g.kernel, Stride: g.stride, Padding: g.padding},
			define: func(_ values, x []float64) []float64 {
				return g.pool(x, image[0], math.Inf(-1), func(a, b float64) float64 { return max(a, b) }, 1)
			}},
		"avg pool": {in: image, layer: &AvgPool2d{Kernel: g.kernel, Stride: g.stride, Padding: g.padding},
			define: func(_ values, x []float64) []float64 {
				return g.pool(x, image[0], 0, func(a, b float64) float64 { return a + b }, 1/float64(g.kernel*g.kernel))
			}},
	}
}

// affine is x·Wᵀ + b for each row of x.
func affine(x, weight, bias []float64, width int) (y []float64) {
	for ; len(x) > 0; x = x[width:] {
		for o := range len(weight) / width {
			sum := 0.0
			if bias != nil {
				sum = bias[o]
			}
			for i := range width {
				sum += x[i] * weight[o*width+i]
			}
			y = append(y, sum)
		}
	}
	return y
}

// normalize is a layer norm with PyTorch's eps.
func normalize(x, weight, bias []float64) (y []float64) {
	width := len(weight)
	for ; len(x) > 0; x = x[width:] {
		mean, variance := 0.0, 0.0
		for _, v := range x[:width] {
			mean += v / float64(width)
		}
		for _, v := range x[:width] {
			variance += (v - mean) * (v - mean) / float64(width)
		}
		for i, v := range x[:width] {
			y = append(y, (v-mean)/math.Sqrt(variance+1e-5)*weight[i]+bias[i])
		}
	}
	return y
}

// attend is softmax(q·kᵀ/√d)·v for each head, between two projections.
func attend(v values, x []float64, heads, width int, all bool) []float64 {
	qkv := affine(x, v["in_proj_weight"], v["in_proj_bias"], width)
	positions, d := len(x)/width, width/heads
	mixed := make([]float64, len(x))
	for h := range heads {
		row := func(part, at int) []float64 { return qkv[at*3*width+part*width+h*d:][:d] }
		for at := range positions {
			last := at + 1
			if all {
				last = positions
			}
			p, total := make([]float64, last), 0.0
			for to := range p {
				for i, q := range row(0, at) {
					p[to] += q * row(1, to)[i] / math.Sqrt(float64(d))
				}
				p[to] = math.Exp(p[to])
				total += p[to]
			}
			for to := range p {
				for i, v := range row(2, to) {
					mixed[at*width+h*d+i] += p[to] / total * v
				}
			}
		}
	}
	return affine(mixed, v["out_proj.weight"], v["out_proj.bias"], width)
}

func TestDefinitions(t *testing.T) {
	for seed := range uint64(60) {
		for name, c := range trials(rand.New(rand.NewPCG(seed, 1))) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				for _, portable := range []bool{false, true} {
					defined(t, c, seed, portable)
				}
			})
		}
	}
}

// defined compares a small batch, sample by sample.
func defined(t *testing.T, c trial, seed uint64, portable bool) {
	const samples = 3
	n := build(t, Config{Threads: 2, Portable: portable}, c.in, c.layer, true)
	n.scramble()
	x := noise(seed+50, samples*c.in.Len())
	y, err := n.Forward(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	v := n.values()
	for i := range samples {
		want := c.define(v, wide(x[i*c.in.Len():][:c.in.Len()]))
		got := y[i*len(y)/samples:][:len(y)/samples]
		if len(want) != len(got) {
			t.Fatalf("of %v: %d floats, want %d", c.in, len(got), len(want))
		}
		for k, v := range want {
			if math.Abs(float64(got[k])-v) > 2e-5*(1+math.Abs(v)) {
				t.Fatalf("of %v, sample %d: output %d is %v, want %v", c.in, i, k, got[k], v)
			}
		}
	}
}
