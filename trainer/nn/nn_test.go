package nn

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/nn/internal/draw"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// networks are all that the package has.
var networks = map[string]func(Config) (*Net, error){"ConvNet": NewConvNet, "tutorial": NewTutorial, "MLP": classic}

func classic(c Config) (*Net, error) { return NewMLP(c) }

// noise is n samples, always the same.
func noise(n, pixels, classes int) Batch {
	s := draw.Stream(5)
	b := Batch{X: make([]float32, n*pixels), Y: make([]uint8, n)}
	for i := range b.X {
		b.X[i] = s.Uniform(1)
	}
	for i := range b.Y {
		b.Y[i] = uint8(s.Next() % uint64(classes))
	}
	return b
}

func images(n int) Batch { return noise(n, Side*Side, Classes) }

func must(t *testing.T, make func(Config) (*Net, error), c Config) *Net {
	t.Helper()
	n, err := make(c)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// run trains for some steps and returns their losses.
func run(t *testing.T, n *Net, b Batch, steps int, lr float64) []float64 {
	t.Helper()
	sgd, err := trainer.NewSGD(n.Params(), trainer.SGDConfig{LR: lr})
	if err != nil {
		t.Fatal(err)
	}
	var losses []float64
	for range steps {
		loss, err := n.ForwardBackward(t.Context(), b, nil)
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, loss)
		if err := sgd.Step(); err != nil {
			t.Fatal(err)
		}
	}
	return losses
}

// floats are all values, or all gradients, of a network's parameters.
func floats(n *Net, of func(p *trainer.Param) tensor.Tensor) []float32 {
	var all []float32
	for _, p := range n.Params() {
		x, _ := tensor.Data[float32](of(p))
		all = append(all, x...)
	}
	return all
}

func values(p *trainer.Param) tensor.Tensor    { return p.Value }
func gradients(p *trainer.Param) tensor.Tensor { return p.Grad }

func TestParams(t *testing.T) {
	for name, want := range map[string][]string{
		"ConvNet": {
			"conv1.weight [16 1 3 3]", "conv1.bias [16]", "conv2.weight [32 16 3 3]", "conv2.bias [32]",
			"fc1.weight [64 4608]", "fc1.bias [64]", "fc2.weight [10 64]", "fc2.bias [10]",
		},
		"tutorial": {
			"conv1.weight [10 1 5 5]", "conv1.bias [10]", "conv2.weight [20 10 5 5]", "conv2.bias [20]",
			"fc1.weight [50 320]", "fc1.bias [50]", "fc2.weight [10 50]", "fc2.bias [10]",
		},
		"MLP": {
			"fc1.weight [1024 784]", "fc1.bias [1024]", "fc2.weight [1024 1024]", "fc2.bias [1024]",
			"fc3.weight [10 1024]", "fc3.bias [10]",
		},
	} {
		n := must(t, networks[name], Config{Seed: 1})
		var got []string
		for _, p := range n.Params() {
			got = append(got, fmt.Sprint(p.Name, " ", p.Value.Shape()))
			if !slices.Equal(p.Grad.Shape(), p.Value.Shape()) {
				t.Errorf("%s: gradient of shape %v", p.Name, p.Grad.Shape())
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]int{"ConvNet": 300_426, "tutorial": 21_840, "MLP": 1_863_690} {
		if n := len(floats(must(t, networks[name], Config{}), values)); n != want {
			t.Errorf("%s has %d parameters, want %d", name, n, want)
		}
	}
}

// Parameters are uniform within ±1/√(inputs), the same for one seed.
func TestInitialValues(t *testing.T) {
	for _, p := range must(t, NewConvNet, Config{Seed: 1}).Params() {
		x, _ := tensor.Data[float32](p.Value)
		inputs := map[string]float64{"conv1": 9, "conv2": 144, "fc1": 4608, "fc2": 64}[p.Name[:strings.Index(p.Name, ".")]]
		bound, mean, square := 1/math.Sqrt(inputs), 0.0, 0.0
		for _, v := range x {
			if math.Abs(float64(v)) > bound {
				t.Fatalf("%s has %v, beyond %v", p.Name, v, bound)
			}
			mean += float64(v) / float64(len(x))
			square += float64(v*v) / float64(len(x))
		}
		deviation := 4 * bound / math.Sqrt(3*float64(len(x))) // of the mean, four times
		if math.Abs(mean) > deviation || math.Abs(square/(bound*bound/3)-1) > 4/math.Sqrt(float64(len(x))) {
			t.Errorf("%s: mean %v, mean square %v of a bound %v", p.Name, mean, square, bound)
		}
	}
	same := func(a, b Config) bool {
		return slices.Equal(floats(must(t, NewConvNet, a), values), floats(must(t, NewConvNet, b), values))
	}
	if !same(Config{Seed: 7}, Config{Seed: 7, Stream: 1, Threads: 2, Portable: true}) {
		t.Error("one seed gives different values")
	}
	if same(Config{Seed: 7}, Config{Seed: 8}) {
		t.Error("two seeds give the same values")
	}
}

// A training run has the same bits whenever it is run, on any number of threads.
func TestBitEqual(t *testing.T) {
	for _, c := range checks[len(checks)-2:] { // the two networks, in small form
		for _, portable := range []bool{false, true} {
			var want []float32
			var losses []float64
			for _, threads := range []int{1, 2, 3} {
				n, err := newNet(Config{Seed: 7, Threads: threads, Portable: portable}, c.in, c.build)
				if err != nil {
					t.Fatal(err)
				}
				got := run(t, n, noise(25, n.pixels, n.classes), 2, 0.1)
				if want == nil {
					want, losses = floats(n, values), got
				}
				if !slices.Equal(got, losses) || !slices.Equal(floats(n, values), want) {
					t.Errorf("%s, portable %v, on %d threads: another result", c.name, portable, threads)
				}
			}
		}
	}
}

// A sample's output has the same bits in any batch.
func TestBatchIndependence(t *testing.T) {
	for name, make := range networks {
		n := must(t, make, Config{Threads: 2})
		all := images(21)
		z, err := n.pass(t.Context(), all, false)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(z)
		for _, cut := range [][2]int{{0, 1}, {4, 7}, {5, 21}} {
			lo, hi := cut[0], cut[1]
			part := Batch{X: all.X[lo*n.pixels : hi*n.pixels], Y: all.Y[lo:hi]}
			z, err := n.pass(t.Context(), part, false)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(z, want[lo*Classes:hi*Classes]) {
				t.Errorf("%s: samples %d to %d come out differently alone", name, lo, hi)
			}
		}
	}
}

// Without dropout, the mean of two halves' gradients is the whole batch's: what
// data-parallel training relies on.
func TestHalvesAverage(t *testing.T) {
	n := must(t, NewTutorial, Config{NoDropout: true})
	all := images(22)
	sum := make([]float64, 21840)
	for _, lo := range []int{0, 11} {
		half := Batch{X: all.X[lo*n.pixels : (lo+11)*n.pixels], Y: all.Y[lo : lo+11]}
		if _, err := n.ForwardBackward(t.Context(), half, nil); err != nil {
			t.Fatal(err)
		}
		for i, g := range floats(n, gradients) {
			sum[i] += float64(g) / 2
		}
	}
	if _, err := n.ForwardBackward(t.Context(), all, nil); err != nil {
		t.Fatal(err)
	}
	for i, g := range floats(n, gradients) {
		if math.Abs(sum[i]-float64(g)) > 1e-6 {
			t.Fatalf("gradient %d is %v, of the halves %v", i, g, sum[i])
		}
	}
}

// Streams and steps differ in their masks; without dropout nothing does.
func TestMasks(t *testing.T) {
	first := func(c Config) float64 { return run(t, must(t, NewTutorial, c), images(4), 1, 0.1)[0] }
	if first(Config{}) == first(Config{Stream: 1}) {
		t.Error("two streams drop the same")
	}
	if first(Config{NoDropout: true}) != first(Config{NoDropout: true, Stream: 1}) {
		t.Error("a stream matters without dropout")
	}
	n := must(t, NewTutorial, Config{})
	a, err1 := n.ForwardBackward(t.Context(), images(4), nil)
	b, err2 := n.ForwardBackward(t.Context(), images(4), nil)
	if errors.Join(err1, err2) != nil || a == b {
		t.Errorf("two steps drop the same: loss %v, %v; %v", a, b, errors.Join(err1, err2))
	}
	n.SetStep(0)
	if again, err := n.ForwardBackward(t.Context(), images(4), nil); err != nil || again != a {
		t.Errorf("the first step again: loss %v, %v; want %v", again, err, a)
	}
	n.SetStep(0)
	n.SetStream(1)
	want := run(t, must(t, NewTutorial, Config{Stream: 1}), images(4), 1, 0.1)[0]
	if other, err := n.ForwardBackward(t.Context(), images(4), nil); err != nil || other != want {
		t.Errorf("another stream: loss %v, %v; want %v", other, err, want)
	}
}
