package layers

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"peermesh/ops/tensor"
)

// Whatever a network cannot be made of is an error that says where.
func TestNewRefuses(t *testing.T) {
	twice := &Linear{Out: 3}
	late := &Embedding{Rows: 4, Width: 4}
	image := Shape{2, 5, 5}
	for name, c := range map[string]struct {
		config Config
		in     Shape
		root   Layer
		want   string
	}{
		"threads":           {Config{Threads: -1}, Shape{3}, &ReLU{}, "threads"},
		"no layer":          {Config{}, Shape{3}, nil, "without a layer"},
		"shape":             {Config{}, Shape{3, 0}, &ReLU{}, "[3 0]"},
		"one object twice":  {Config{}, Shape{3}, Sequential{twice, twice}, "1 is in two places"},
		"one name twice":    {Config{}, Shape{3}, Sequential{Named{"a", &Linear{Out: 3}}, Named{"a", &Linear{Out: 3}}}, "a.weight"},
		"linear of nothing": {Config{}, Shape{3}, &Linear{}, "Linear"},
		"tied to nothing":   {Config{}, Shape{4}, &Linear{Out: 4, Tied: late}, "tied"},
		"conv of a vector":  {Config{}, Shape{3}, &Conv2d{Out: 1, Kernel: 1}, "channels, height, width"},
		"large kernel":      {Config{}, image, &Conv2d{Out: 1, Kernel: 6}, "larger than its input"},
		"no kernel":         {Config{}, image, &Conv2d{Out: 1}, "kernel 0"},
		"pool padding":      {Config{}, image, &MaxPool2d{Kernel: 2, Padding: 2}, "more than half"},
		"mean of a vector":  {Config{}, Shape{3}, &GlobalAvgPool2d{}, "GlobalAvgPool2d"},
		"certain dropout":   {Config{}, Shape{3}, &Dropout{P: 1}, "Dropout"},
		"norm of a vector":  {Config{}, Shape{3}, &BatchNorm2d{}, "BatchNorm2d"},
		"negative eps":      {Config{}, Shape{3}, &LayerNorm{Eps: -1}, "LayerNorm"},
		"rows of outputs":   {Config{}, Shape{3}, Sequential{&ReLU{}, &Embedding{Rows: 4, Width: 4}}, "want the batch"},
		"huge table":        {Config{}, Shape{3}, &Embedding{Rows: 1 << 24, Width: 1 << 20}, "shape"},
		"position":          {Config{}, Shape{3}, &Position{}, "Position"},
		"heads":             {Config{}, Shape{3, 4}, &SelfAttention{Heads: 3}, "heads"},
		"residual":          {Config{}, Shape{3}, &Residual{Body: &Linear{Out: 4}}, "residual"},
	} {
		_, err := New(c.config, c.in, c.root, &MSE{})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "layers: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(Config{}, Shape{1}, &ReLU{}, &CrossEntropy{}); err == nil {
		t.Error("one class is a choice")
	}
	for _, c := range []ResNetConfig{{Blocks: -1}, {Stages: 9}} {
		if _, err := NewResNet(c); err == nil {
			t.Errorf("%+v is a network", c)
		}
	}
	if _, err := NewTransformer(TransformerConfig{Blocks: -2}); err == nil {
		t.Error("no blocks are a transformer")
	}
}

func resnet(t testing.TB) *Net {
	t.Helper()
	return must(New(Config{Threads: 2}, Shape{1, 8, 8}, must(NewResNet(ResNetConfig{Width: 2, Classes: 3})), &CrossEntropy{}))
}

// What a batch may be wrong in is an error, and the network lives on.
func TestBatchRefused(t *testing.T) {
	n := resnet(t)
	good := Batch{X: noise(1, 2*64), Labels: []int32{0, 2}}
	for name, b := range map[string]Batch{
		"nothing":       {},
		"half a one":    {X: good.X[:100], Labels: good.Labels},
		"few labels":    {X: good.X, Labels: good.Labels[:1]},
		"large label":   {X: good.X, Labels: []int32{0, 3}},
		"below a label": {X: good.X, Labels: []int32{-1, 0}},
	} {
		if _, err := n.ForwardBackward(t.Context(), b, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := n.Evaluate(t.Context(), b); err == nil {
			t.Errorf("%s: no error in evaluation", name)
		}
	}
	if _, err := n.ForwardBackward(t.Context(), good, nil); err != nil {
		t.Error(err)
	}
	e := build(t, Config{}, Shape{2}, &Embedding{Rows: 4, Width: 2}, true)
	for _, v := range []float32{-1, 4, 0.5, float32(math.NaN())} {
		if _, err := e.Forward(t.Context(), []float32{0, v}); err == nil || !strings.Contains(err.Error(), "below 4") {
			t.Errorf("looked up %v: %v", v, err)
		}
	}
	one := build(t, Config{}, Shape{2, 1, 1}, &BatchNorm2d{}, false)
	if _, err := one.start(t.Context(), Batch{X: []float32{1, 2}}, true); err == nil {
		t.Error("one value has a variance")
	}
}

// A context that has ended stops a step between two layers, with its cause.
func TestContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	n := resnet(t)
	if _, err := n.Forward(ctx, noise(1, 64)); !errors.Is(err, why) {
		t.Errorf("forward: %v", err)
	}
	n.pass = Pass{N: 1, ctx: ctx, net: n}
	if _, err := n.root.Backward(&n.pass, nil); !errors.Is(err, why) {
		t.Errorf("backward: %v", err)
	}
}

// Every parameter is ready once, none before all that come later in the network,
// and its gradient does not change after.
func TestReady(t *testing.T) {
	tied := must(NewTransformer(TransformerConfig{Vocabulary: 9, Width: 8, Heads: 2, Blocks: 1, Tied: true}))
	for name, n := range map[string]*Net{
		"resnet":      resnet(t),
		"transformer": must(New(Config{}, Shape{4}, tied, &CrossEntropy{})),
	} {
		b := Batch{X: make([]float32, 4*n.in.Len()), Labels: make([]int32, 4*n.out.Len()/n.out.last())}
		seen := make(map[int][]float32)
		var order []int
		_, err := n.ForwardBackward(t.Context(), b, func(i int) {
			if seen[i] != nil {
				t.Errorf("%s: %s is ready twice", name, n.params[i].Name)
			}
			seen[i] = slices.Clone(floats(n.params[i].Grad))
			order = append(order, i)
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range n.params {
			if !slices.Equal(seen[i], floats(p.Grad)) {
				t.Errorf("%s: the gradient of %s was not final", name, p.Name)
			}
		}
		if len(order) != len(n.params) || order[0] < len(n.params)/2 || order[len(order)-1] != 0 {
			t.Errorf("%s: ready in the order %v", name, order)
		}
	}
}

// Gradients go where Grad is, also when it has been moved; a parameter without one
// is not reported, and the others stay the same.
func TestGradientsMove(t *testing.T) {
	n, frozen := resnet(t), resnet(t)
	b := Batch{X: noise(1, 2*64), Labels: []int32{0, 2}}
	moved := n.params[3]
	before := moved.Grad
	moved.Grad = tensor.New(tensor.Float32, moved.Value.Len())
	frozen.params[3].Grad = tensor.Tensor{}
	for _, n := range []*Net{n, frozen} {
		if _, err := n.ForwardBackward(t.Context(), b, func(i int) {
			if n == frozen && i == 3 {
				t.Error("a gradient that nobody wants is ready")
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if slices.Max(floats(before)) != 0 || slices.Equal(floats(before), floats(moved.Grad)) {
		t.Error("the gradient has not moved")
	}
	for i, p := range n.params {
		if i != 3 && !slices.Equal(floats(p.Grad), floats(frozen.params[i].Grad)) {
			t.Errorf("%s has another gradient", p.Name)
		}
	}
	moved.Grad = tensor.New(tensor.Float64, moved.Value.Len())
	if _, err := n.ForwardBackward(t.Context(), b, nil); err == nil || !strings.Contains(err.Error(), moved.Name) {
		t.Errorf("a gradient of float64: %v", err)
	}
}

// Evaluate takes a batch apart, adds up, and leaves no trace.
func TestEvaluate(t *testing.T) {
	n := must(New(Config{Threads: 2}, Shape{1, 64, 64}, Sequential{
		&Conv2d{Out: 2, Kernel: 8, Stride: 8}, &BatchNorm2d{}, &Dropout{P: 0.5}, &GlobalAvgPool2d{}, &Linear{Out: 3},
	}, &CrossEntropy{}))
	const samples = 70 // more than fit into evalFloats
	b := Batch{X: noise(1, samples*64*64), Labels: make([]int32, samples)}
	for i := range b.Labels {
		b.Labels[i] = int32(i % 3)
	}
	b.Labels[5] = Ignored
	got, err := n.Evaluate(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	var want Score
	for i := range samples {
		s, err := n.Evaluate(t.Context(), Batch{X: b.X[i*64*64 : (i+1)*64*64], Labels: b.Labels[i : i+1]})
		if err != nil {
			t.Fatal(err)
		}
		want = want.Plus(s)
	}
	if got.Count != samples-1 || got.Right != want.Right || math.Abs(got.Sum-want.Sum) > 1e-4 {
		t.Errorf("%+v, one by one %+v", got, want)
	}
	if floats(n.buffers[2].Value)[0] != 0 || n.step != 0 {
		t.Error("evaluation left a trace")
	}
}

// A step's masks are a function of seed, stream and step: it can be taken again.
func TestDropoutRepeats(t *testing.T) {
	n := build(t, Config{Seed: 3}, Shape{200}, &Dropout{P: 0.3}, false)
	x := slices.Repeat([]float32{1}, 200)
	at := func(step int64, stream uint64) []float32 {
		n.SetStream(stream)
		n.SetStep(step)
		y, _ := n.backward(t, x, x)
		return y
	}
	first := at(0, 0)
	if !slices.Equal(first, at(0, 0)) || slices.Equal(first, at(1, 0)) || slices.Equal(first, at(0, 1)) {
		t.Error("masks do not follow step and stream")
	}
	kept := 0
	for _, v := range first {
		if v != 0 {
			kept++
			if v != float32(1/0.7) {
				t.Fatalf("kept %v", v)
			}
		}
	}
	if kept < 110 || kept > 170 {
		t.Errorf("kept %d of 200", kept)
	}
	y, err := n.Forward(t.Context(), x)
	if err != nil || !slices.Equal(y, x) {
		t.Errorf("evaluation drops; %v", err)
	}
}

// Position after position, what comes later in a sequence does not matter.
func TestAttentionIsCausal(t *testing.T) {
	n := build(t, Config{Seed: 2}, Shape{9, 8}, &SelfAttention{Heads: 2}, false)
	x := noise(4, 9*8)
	y := slices.Clone(must(n.Forward(t.Context(), x)))
	for i := 5 * 8; i < len(x); i++ {
		x[i] += 1
	}
	z := must(n.Forward(t.Context(), x))
	if !slices.Equal(y[:5*8], z[:5*8]) || slices.Equal(y, z) {
		t.Error("a position sees what comes after it, or none sees anything")
	}
}

// The approximations are as good as they say.
func TestExp32(t *testing.T) {
	for x := float32(-90); x < 90; x += 0.0137 {
		want := math.Exp(float64(x))
		switch got := float64(exp32(x)); {
		case x < -87 && got != 0, x > 88 && !math.IsInf(got, 1):
			t.Fatalf("exp32(%v) = %v", x, got)
		case x >= -87 && x <= 88 && math.Abs(got/want-1) > 2e-7:
			t.Fatalf("exp32(%v) = %v, want %v", x, got, want)
		}
		if got := float64(tanh32(x)); math.Abs(got-math.Tanh(float64(x))) > 2.5e-7 {
			t.Fatalf("tanh32(%v) = %v", x, got)
		}
	}
	if v := exp32(float32(math.NaN())); v == v {
		t.Error("a NaN is lost")
	}
}

// A label that does not count has no part in loss or gradient; where none counts,
// both are zero.
func TestIgnored(t *testing.T) {
	n := must(New(Config{}, Shape{3}, Flatten{}, &CrossEntropy{Ignore: 2}))
	s, err := n.Evaluate(t.Context(), Batch{X: noise(1, 6), Labels: []int32{2, 2}})
	if err != nil || s.Count != 0 || s.Mean() != 0 || s.Accuracy() != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// Initial values have PyTorch's bounds.
func TestInitialValues(t *testing.T) {
	n := must(New(Config{Seed: 1}, Shape{4, 16}, Sequential{&Linear{Out: 40}, &SelfAttention{Heads: 2}}, &MSE{}))
	for i, want := range []float64{0.25, 0.25, math.Sqrt(6.0 / 160), 0, 1 / math.Sqrt(40), 0} {
		most := 0.0
		for _, v := range n.weights[i].Value {
			most = max(most, math.Abs(float64(v)))
		}
		if most > want || most < 0.85*want {
			t.Errorf("%s reaches to %v, want %v", n.params[i].Name, most, want)
		}
	}
	other := must(New(Config{Seed: 2}, Shape{4, 16}, Sequential{&Linear{Out: 40}}, &MSE{}))
	if slices.Equal(n.weights[0].Value, other.weights[0].Value) {
		t.Error("seeds do not matter")
	}
}
