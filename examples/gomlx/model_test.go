package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/graph"
	ml "github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/layers"

	"peermesh/examples/internal/ranks"
	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/trainer/mnist"
)

func small(c *ml.Context, x *graph.Node) *graph.Node {
	x = graph.Tanh(layers.DenseWithBias(c.In("hidden"), x, 4))
	return layers.DenseWithBias(c.In("out"), x, 3)
}

func newSmall(t *testing.T) *Model {
	t.Helper()
	backend, err := simplego.New(sequential)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Finalize)
	m, err := New(backend, 2, small, 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func floats(t *testing.T, x tensor.Tensor) []float32 {
	t.Helper()
	p, ok := tensor.Data[float32](x)
	if !ok {
		t.Fatalf("%v is not float32", x)
	}
	return p
}

var three = Batch{X: []float32{1, 2, -1, 0.5, 0.25, -2}, Y: []int32{0, 2, 1}}

// Parameters come in forward order, and each is ready once, the last first.
func TestModelParams(t *testing.T) {
	m := newSmall(t)
	var got []string
	for _, p := range m.Params() {
		got = append(got, fmt.Sprintf("%s %v %v", p.Name, p.Value, p.Grad))
	}
	want := []string{
		"/hidden/dense/weights float32[2 4] float32[2 4]", "/hidden/dense/biases float32[4] float32[4]",
		"/out/dense/weights float32[4 3] float32[4 3]", "/out/dense/biases float32[3] float32[3]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var order []int
	if _, err := m.ForwardBackward(t.Context(), three, func(i int) { order = append(order, i) }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(order, []int{3, 2, 1, 0}) {
		t.Errorf("ready in the order %v", order)
	}
}

// Gradients are those of the loss: as much as it changes when a parameter does. So the
// values that are set here are what GoMLX computes with.
func TestModelGradients(t *testing.T) {
	m := newSmall(t)
	const h = 1e-2
	for _, p := range m.Params() {
		if _, err := m.ForwardBackward(t.Context(), three, nil); err != nil {
			t.Fatal(err)
		}
		values, grads := floats(t, p.Value), slices.Clone(floats(t, p.Grad))
		for i := range values {
			loss := func(x float32) float64 {
				before := values[i]
				values[i] = x
				defer func() { values[i] = before }()
				l, err := m.ForwardBackward(t.Context(), three, nil)
				if err != nil {
					t.Fatal(err)
				}
				return l
			}
			x := values[i]
			if want := (loss(x+h) - loss(x-h)) / (2 * h); math.Abs(want-float64(grads[i])) > 1e-4 {
				t.Errorf("%s[%d]: gradient %v, the loss changes by %v", p.Name, i, grads[i], want)
			}
		}
	}
}

func TestModelRefuses(t *testing.T) {
	m := newSmall(t)
	for _, b := range []Batch{{}, {X: three.X[:5], Y: three.Y}} {
		if _, err := m.ForwardBackward(t.Context(), b, nil); err == nil || !strings.Contains(err.Error(), "want 2 values for each class") {
			t.Errorf("%v: got %v", b, err)
		}
		if _, err := m.Right(b); err == nil {
			t.Errorf("%v is judged", b)
		}
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	if _, err := m.ForwardBackward(ctx, three, nil); !errors.Is(err, enough) {
		t.Errorf("got %v, want %v", err, enough)
	}
}

// A parameter without part in the loss is said, as a DDP could not wait for it.
func TestModelUnused(t *testing.T) {
	backend, err := simplego.New(sequential)
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Finalize()
	m, err := New(backend, 2, func(c *ml.Context, x *graph.Node) *graph.Node {
		c.In("idle").VariableWithValue("x", []float32{1, 2})
		return small(c, x)
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.ForwardBackward(t.Context(), three, nil); err == nil || !strings.Contains(err.Error(), "no part in the loss") {
		t.Errorf("got %v", err)
	}
}

// digits are made-up images whose class is where their ink is.
func digits(n int) *mnist.Set {
	s := &mnist.Set{Images: make([]byte, n*mnist.Pixels), Labels: make([]byte, n)}
	for i := range n {
		class := i % mnist.Classes
		s.Labels[i] = byte(class)
		for k := range 40 {
			s.Images[i*mnist.Pixels+class*70+k] = byte(150 + (i*7+k*13)%100)
		}
	}
	return s
}

// Ranks that share out the batches train the model that one trains, to rounding, and
// all the same to the bit.
func TestTrainEquivalence(t *testing.T) {
	data := &mnist.Data{Train: digits(200), Test: digits(50)}
	o := options{steps: 12, batch: 40, rate: 0.05, log: t.Logf}
	values := func(n int) [][]float32 {
		all := make([][]float32, n)
		err := ranks.Run(t.Context(), n, func(ctx context.Context, g *ops.Group) error {
			m, accuracy, err := train(ctx, g, data, o)
			if err != nil {
				return err
			}
			if accuracy < 0.9 {
				t.Errorf("%d ranks: accuracy %v", n, accuracy)
			}
			for _, p := range m.Params() {
				all[g.Rank()] = append(all[g.Rank()], floats(t, p.Value)...)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	one, two := values(1), values(2)
	if !slices.Equal(two[0], two[1]) {
		t.Error("two ranks hold different models")
	}
	for i, want := range one[0] {
		if got := two[0][i]; math.Abs(float64(got-want)) > 1e-5 {
			t.Fatalf("parameter %d is %v on two ranks, %v on one", i, got, want)
		}
	}
}

func TestTrainRefuses(t *testing.T) {
	data := &mnist.Data{Train: digits(20), Test: digits(10)}
	err := ranks.Run(t.Context(), 2, func(ctx context.Context, g *ops.Group) error {
		_, _, err := train(ctx, g, data, options{steps: 1, batch: 3})
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "a batch of 3 for 2 ranks") {
		t.Errorf("got %v", err)
	}
}
