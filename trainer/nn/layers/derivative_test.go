package layers

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Backward beside the derivatives of the definitions, which are differences in float64: of the
// layer's own forward pass, in float32, they could tell no more than two digits.

// differ is half the distance of a central difference. Its error is of the order of differ²,
// 10⁻¹², and of float64's rounding over differ, 10⁻¹⁰: both far below float32's rounding.
const differ = 0x1p-20

// looked is how many elements of an input or a parameter are varied, spread over all of it.
const looked = 8

// jacobian is the derivative of each of f's results by v[i].
func jacobian(v []float64, i int, f func() []float64) []float64 {
	was := v[i]
	v[i] = was + differ
	up := f()
	v[i] = was - differ
	down := f()
	v[i] = was
	for k := range up {
		up[k] = (up[k] - down[k]) / (2 * differ)
	}
	return up
}

// A slope is what one gradient should be, and what it is a sum of.
type slope struct {
	at          int
	value, size float64 // Σ J·dy and Σ |J·dy|
}

func slopes(v []float64, dy []float32, f func() []float64) (s []slope) {
	n := min(len(v), looked)
	for k := range n {
		e := slope{at: k * len(v) / n}
		for o, j := range jacobian(v, e.at, f) {
			e.value += j * float64(dy[o])
			e.size += math.Abs(j * float64(dy[o]))
		}
		s = append(s, e)
	}
	return s
}

// compareSlopes allows for float32's rounding alone. A sum of n terms is off by n·2⁻²⁴ of its
// terms' magnitudes at most (Higham, Accuracy and Stability, 2002, §4.2). Terms are themselves
// results of some operations, each of which adds a term's rounding; those of a softmax or a
// norm are differences of what is as large as the largest sum of the tensor, so this and not
// the sum's own magnitude is what counts.
func compareSlopes(t *testing.T, what string, got []float32, want []slope, terms int) {
	t.Helper()
	const operations = 16 // of one term: a product or two, or an exp, a root and a division
	size := 0.0
	for _, s := range want {
		size = max(size, s.size)
	}
	for _, s := range want {
		if off := math.Abs(float64(got[s.at]) - s.value); !(off <= float64(terms+operations)*0x1p-24*size) {
			t.Errorf("%s[%d] has gradient %v, the definition %v: off by %.2g of %.2g", what, s.at, got[s.at], s.value, off/size, size)
		}
	}
}

// derived compares a layer's gradients for a batch, by its input unless raw and by every
// parameter, and first its output in training.
func derived(t *testing.T, c trial, x []float32, portable, raw bool) {
	t.Helper()
	n := build(t, Config{Threads: 2, Portable: portable}, c.in, c.layer, raw)
	n.scramble()
	samples := len(x) / c.in.Len()
	dy := noise(9, samples*n.out.Len())
	n.SetStep(0)
	y, dx := n.backward(t, x, dy)
	v, wx := n.values(), wide(x)
	f := func() (all []float64) {
		if c.whole != nil {
			return c.whole(v, wx)
		}
		for i := range samples {
			all = append(all, c.define(v, wx[i*c.in.Len():][:c.in.Len()])...)
		}
		return all
	}
	defined := f()
	if len(defined) != len(y) {
		t.Fatalf("of %v: %d floats, want %d", c.in, len(y), len(defined))
	}
	for k, want := range defined {
		if math.Abs(float64(y[k])-want) > 2e-5*(1+math.Abs(want)) {
			t.Fatalf("output %d is %v, want %v", k, y[k], want)
		}
	}
	if !raw {
		compareSlopes(t, "x", dx, slopes(wx, dy, f), len(dy))
	}
	for _, w := range n.weights {
		compareSlopes(t, w.Param.Name, w.Grad, slopes(v[w.Param.Name], dy, f), len(dy))
	}
}

// windows are all kernels up to 5, strides up to 3 and paddings up to 2 that a 7×6 image has
// room for.
func windows(do func(name string, g window)) {
	for kernel := 1; kernel <= 5; kernel++ {
		for stride := 1; stride <= 3; stride++ {
			for padding := 0; padding <= 2; padding++ {
				do(fmt.Sprintf("kernel %d stride %d padding %d", kernel, stride, padding), window{7, 6, kernel, stride, padding})
			}
		}
	}
}

func TestWindowsAgainstDefinitions(t *testing.T) {
	in := Shape{2, 7, 6}
	windows(func(name string, g window) {
		all := map[string]trial{"conv": {in: in, layer: &Conv2d{Out: 3, Kernel: g.kernel, Stride: g.stride, Padding: g.padding},
			define: func(v values, x []float64) []float64 { return g.convolve(x, v["weight"], v["bias"], 2, 3) }}}
		if 2*g.padding <= g.kernel {
			maps.Copy(all, pools(in, g))
		}
		for what, c := range all {
			t.Run(what+" "+name, func(t *testing.T) {
				for _, portable := range []bool{false, true} {
					derived(t, c, noise(4, 2*in.Len()), portable, false)
				}
			})
		}
	})
}

func TestLayersAgainstDefinitions(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 2))
		all := trials(r)
		maps.Copy(all, trained(r))
		for name, c := range all {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				x, raw := noise(seed+50, 3*c.in.Len()), name == "embedding"
				if raw {
					for i, v := range x {
						x[i] = float32(min(int(math.Abs(float64(v)*2)), c.layer.(*Embedding).Rows-1))
					}
				}
				for _, portable := range []bool{false, true} {
					derived(t, c, slices.Clone(x), portable, raw)
				}
			})
		}
	}
}

// trained draws one of each kind of layer that has a part in training of its own, or none in
// TestDefinitions.
func trained(r *rand.Rand) map[string]trial {
	image := Shape{1 + r.IntN(4), 2 + r.IntN(4), 1 + r.IntN(5)}
	features := Shape{1 + r.IntN(5), 1 + r.IntN(20)}
	plane, width, outs, rows := image[1]*image[2], features[1], 1+r.IntN(9), 1+r.IntN(6)
	return map[string]trial{
		"batch norm": {in: image, layer: &BatchNorm2d{}, whole: func(v values, x []float64) []float64 {
			return normalizeChannels(x, v["weight"], v["bias"], plane)
		}},
		"relu": {in: features, layer: &ReLU{}, define: by(func(v float64) float64 { return max(v, 0) })},
		"gelu tanh": {in: features, layer: &GELU{Tanh: true}, define: by(func(v float64) float64 {
			return v / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v)))
		})},
		"global avg pool": {in: image, layer: &GlobalAvgPool2d{}, define: func(_ values, x []float64) (y []float64) {
			for part := range slices.Chunk(x, plane) {
				y = append(y, mean(part))
			}
			return y
		}},
		"position": {in: features, layer: &Position{}, define: func(v values, x []float64) (y []float64) {
			for i, e := range x {
				y = append(y, e+v["weight"][i])
			}
			return y
		}},
		"embedding": {in: Shape{7}, layer: &Embedding{Rows: rows, Width: width}, define: func(v values, x []float64) (y []float64) {
			for _, row := range x {
				y = append(y, v["weight"][int(row)*width:][:width]...)
			}
			return y
		}},
		"residual": {in: features, layer: &Residual{Body: &Linear{Out: outs}, Shortcut: Named{"short", &Linear{Out: outs}}},
			define: func(v values, x []float64) []float64 {
				y := affine(x, v["weight"], v["bias"], width)
				for i, s := range affine(x, v["short.weight"], v["short.bias"], width) {
					y[i] += s
				}
				return y
			}},
		"flatten": {in: image, layer: Sequential{Flatten{}, Named{"fc", &Linear{Out: outs}}}, define: func(v values, x []float64) []float64 {
			return affine(x, v["fc.weight"], v["fc.bias"], len(x))
		}},
	}
}

// normalizeChannels is a batch norm in training: x is samples of channels of planes.
func normalizeChannels(x, weight, bias []float64, plane int) []float64 {
	y := make([]float64, len(x))
	for c := range weight {
		var of []float64 // this channel, of all samples
		for at := c * plane; at < len(x); at += len(weight) * plane {
			of = append(of, x[at:][:plane]...)
		}
		one := slices.Repeat([]float64{1}, len(of))
		of = normalize(of, one, make([]float64, len(of)))
		for at := c * plane; at < len(x); at += len(weight) * plane {
			for i := range plane {
				y[at+i] = of[i]*weight[c] + bias[c]
			}
			of = of[plane:]
		}
	}
	return y
}

// by is a definition element by element.
func by(f func(v float64) float64) func(values, []float64) []float64 {
	return func(_ values, x []float64) (y []float64) {
		for _, v := range x {
			y = append(y, f(v))
		}
		return y
	}
}

func mean(x []float64) (m float64) {
	for _, v := range x {
		m += v / float64(len(x))
	}
	return m
}

// Dropout's gradient is its mask, which is what it makes of ones.
func TestDropoutAgainstDefinition(t *testing.T) {
	for _, l := range []Dropout{{P: 0.4}, {P: 0.7, Channel: true}, {P: 0}} {
		in := Shape{6, 3, 2}
		n := build(t, Config{Threads: 2}, in, &Dropout{P: l.P, Channel: l.Channel}, false)
		n.SetStep(0)
		mask, _ := n.backward(t, slices.Repeat([]float32{1}, 3*in.Len()), make([]float32, 3*in.Len()))
		for _, v := range mask {
			if keep := 1 / (1 - l.P); v != 0 && math.Abs(float64(v)-keep) > 1e-6 {
				t.Errorf("dropout of %v multiplies by %v, want 0 or %v", l.P, v, keep)
			}
		}
		c := trial{in: in, layer: &Dropout{P: l.P, Channel: l.Channel}, whole: func(_ values, x []float64) (y []float64) {
			for i, v := range x {
				y = append(y, v*float64(mask[i]))
			}
			return y
		}}
		derived(t, c, noise(4, 3*in.Len()), false, false)
	}
}

// The gradients of the losses, by each output.
func TestLossesAgainstDefinitions(t *testing.T) {
	for classes := 2; classes <= 40; classes += 19 {
		const rows = 3
		z, targets := noise(1, rows*classes), noise(2, rows*classes)
		labels := []int32{0, Ignored, int32(classes) - 1}
		wz := wide(z)
		for name, c := range map[string]struct {
			loss Loss
			f    func() []float64
		}{
			"cross entropy": {&CrossEntropy{}, func() []float64 {
				loss := 0.0
				for i, label := range labels {
					if label == Ignored {
						continue
					}
					sum, row := 0.0, wz[i*classes:][:classes]
					for _, v := range row {
						sum += math.Exp(v - row[label])
					}
					loss += math.Log(sum) / 2 // of two rows that count
				}
				return []float64{loss}
			}},
			"mse": {&MSE{}, func() []float64 {
				loss := 0.0
				for i, v := range wz {
					d := v - float64(targets[i])
					loss += d * d / float64(len(wz))
				}
				return []float64{loss}
			}},
		} {
			t.Run(fmt.Sprint(name, " of ", classes), func(t *testing.T) {
				n := must(newNet(Config{}, Shape{rows, classes}, Sequential{}, c.loss, true))
				dz := make([]float32, len(z))
				b := Batch{X: z, Labels: labels, Targets: targets}
				if _, err := n.start(t.Context(), b, true); err != nil {
					t.Fatal(err)
				}
				score, err := c.loss.Score(&n.pass, b, z, dz)
				if want := c.f()[0]; err != nil || math.Abs(score.Mean()-want) > 1e-6*(1+want) {
					t.Errorf("loss %v, %v, want %v", score.Mean(), err, want)
				}
				compareSlopes(t, "z", dz, slopes(wz, []float32{1}, c.f), classes)
			})
		}
	}
}
