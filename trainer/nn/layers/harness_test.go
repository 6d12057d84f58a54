package layers

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A linearLoss is Σ z·Targets: its gradient is what a test would give to Backward.
type linearLoss struct{}

func (linearLoss) Init(Shape) error { return nil }

func (linearLoss) Score(_ *Pass, b Batch, z, dz []float32) (Score, error) {
	s := Score{Count: 1}
	for i, v := range z {
		s.Sum += float64(v) * float64(b.Targets[i])
	}
	copy(dz, b.Targets)
	return s, nil
}

// build is a network of one layer, whose gradient by the input is computed unless
// raw.
func build(t testing.TB, c Config, in Shape, l Layer, raw bool) *Net {
	t.Helper()
	n, err := newNet(c, in, l, linearLoss{}, raw)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// backward takes a batch forward, and its gradient backward.
func (n *Net) backward(t testing.TB, x, dy []float32) (y, dx []float32) {
	t.Helper()
	y, err := n.start(t.Context(), Batch{X: x}, true)
	if err != nil {
		t.Fatal(err)
	}
	y = slices.Clone(y)
	dx, err = n.root.Backward(&n.pass, slices.Clone(dy))
	if err != nil {
		t.Fatal(err)
	}
	return y, slices.Clone(dx)
}

func noise(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 7))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// scramble gives parameters values that are not as special as a new layer's.
func (n *Net) scramble() {
	for i, w := range n.weights {
		for j, v := range noise(uint64(i+100), len(w.Value)) {
			w.Value[j] = w.Value[j]*0.5 + 0.3*v
		}
	}
}

// objective is Σ y·dy in training.
func (n *Net) objective(t testing.TB, x, dy []float32) float64 {
	t.Helper()
	n.SetStep(0)
	y, err := n.start(t.Context(), Batch{X: x}, true)
	if err != nil {
		t.Fatal(err)
	}
	s := 0.0
	for i, v := range y {
		s += float64(v) * float64(dy[i])
	}
	return s
}

// checkGradients compares each gradient with finite differences. Kinks would spoil
// them, so inputs are to stay away from those.
func checkGradients(t *testing.T, n *Net, x []float32) {
	t.Helper()
	y, err := n.Forward(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	dy := noise(9, len(y))
	n.SetStep(0)
	_, dx := n.backward(t, x, dy)
	check := func(what string, v, d []float32) {
		const step = 1.0 / 128
		for k := range min(len(v), 40) {
			i := k * len(v) / min(len(v), 40)
			was := v[i]
			v[i] = was + step
			up := n.objective(t, x, dy)
			v[i] = was - step
			down := n.objective(t, x, dy)
			v[i] = was
			want := (up - down) / (2 * step)
			if math.Abs(want-float64(d[i])) > 4e-3*(1+math.Abs(want)) {
				t.Errorf("%s[%d] has gradient %v, differences say %v", what, i, d[i], want)
			}
		}
	}
	if dx != nil { // or else the input is rows to look up
		check("x", x, dx)
	}
	for _, w := range n.weights {
		check(w.Param.Name, w.Value, slices.Clone(w.Grad))
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var background = context.Background()
