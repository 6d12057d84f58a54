package nn

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"peermesh/ops/tensor"
)

// ready names every parameter once, the last first, when its gradient is final.
func TestReady(t *testing.T) {
	n := must(t, NewConvNet, Config{Threads: 2})
	var order []int
	final := make(map[int][]float32)
	_, err := n.ForwardBackward(t.Context(), images(5), func(i int) {
		order = append(order, i)
		g, _ := tensor.Data[float32](n.Params()[i].Grad)
		final[i] = slices.Clone(g)
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{7, 6, 5, 4, 3, 2, 1, 0}; !slices.Equal(order, want) {
		t.Errorf("ready %v, want %v", order, want)
	}
	for i, p := range n.Params() {
		if g, _ := tensor.Data[float32](p.Grad); !slices.Equal(g, final[i]) {
			t.Errorf("%s changed after it was ready", p.Name)
		}
	}
}

// Each parameter is asked for once, in forward order, before its stage's forward pass and
// before gradients are looked up: a step may move those until then.
func TestBeforeUse(t *testing.T) {
	n := must(t, NewTutorial, Config{NoDropout: true})
	want, err := n.ForwardBackward(t.Context(), images(3), nil)
	if err != nil {
		t.Fatal(err)
	}
	values := make([][]float32, len(n.Params()))
	for i, p := range n.Params() {
		v, _ := tensor.Data[float32](p.Value)
		values[i] = slices.Clone(v)
		clear(v)
	}
	var asked []int
	n.BeforeUse(func(i int) error {
		asked = append(asked, i)
		p := n.Params()[i]
		v, _ := tensor.Data[float32](p.Value)
		copy(v, values[i])
		p.Grad = tensor.New(tensor.Float32, p.Grad.Shape()...)
		return nil
	})
	got, err := n.ForwardBackward(t.Context(), images(3), nil)
	if err != nil || got != want {
		t.Errorf("loss %v, %v, want %v", got, err, want)
	}
	if want := []int{0, 1, 2, 3, 4, 5, 6, 7}; !slices.Equal(asked, want) {
		t.Errorf("asked for %v, want %v", asked, want)
	}
	for _, p := range n.Params() {
		if g, _ := tensor.Data[float32](p.Grad); !slices.ContainsFunc(g, func(v float32) bool { return v != 0 }) {
			t.Errorf("%s has no gradient where it is now", p.Name)
		}
	}
	if _, _, err := n.Evaluate(t.Context(), images(3)); err != nil || len(asked) != 8 {
		t.Errorf("evaluation: %v, asked for %v", err, asked)
	}
	broken := errors.New("broken")
	n.BeforeUse(func(int) error { return broken })
	if _, err := n.ForwardBackward(t.Context(), images(3), nil); !errors.Is(err, broken) {
		t.Errorf("a parameter that cannot be had: %v", err)
	}
}

func TestCancel(t *testing.T) {
	n := must(t, NewTutorial, Config{})
	cause := errors.New("the world ended")
	ctx, cancel := context.WithCancelCause(t.Context())
	calls := 0
	_, err := n.ForwardBackward(ctx, images(2), func(int) {
		calls++
		cancel(cause)
	})
	if !errors.Is(err, cause) || calls != 2 {
		t.Errorf("cancelled in the last layer: %v after %d calls, want one layer's 2", err, calls)
	}
	if _, err := n.ForwardBackward(ctx, images(2), nil); !errors.Is(err, cause) {
		t.Errorf("cancelled before: %v", err)
	}
	if _, _, err := n.Evaluate(ctx, images(2)); !errors.Is(err, cause) {
		t.Errorf("evaluate, cancelled before: %v", err)
	}
}

func TestBadInput(t *testing.T) {
	n := must(t, NewTutorial, Config{})
	wrongLabel := images(3)
	wrongLabel.Y[2] = 10
	for want, b := range map[string]Batch{
		"nn: a batch of no samples":                                 {},
		"nn: a batch of 2 labels has 783 pixels, want 784 each":     {X: make([]float32, 783), Y: make([]uint8, 2)},
		"nn: a batch of 1 labels has 1568 pixels, want 784 each":    {X: make([]float32, 1568), Y: make([]uint8, 1)},
		"nn: sample 2 has label 10, want at most 9":                 wrongLabel,
		"nn: a batch of 16385 samples, want at most 16384 to train": {Y: make([]uint8, MaxBatch+1)},
	} {
		if _, err := n.ForwardBackward(t.Context(), b, nil); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, _, err := n.Evaluate(t.Context(), b); err == nil {
			t.Errorf("Evaluate takes what should be %s", want)
		}
	}
	for _, threads := range []int{-1, MaxThreads + 1} {
		if _, err := NewConvNet(Config{Threads: threads}); err == nil {
			t.Errorf("%d threads are accepted", threads)
		}
	}
}

// A network that has gone wrong says so, rather than clip a NaN to zero.
func TestNaNReachesTheLoss(t *testing.T) {
	for name, make := range networks {
		n := must(t, make, Config{NoDropout: true})
		b := images(2)
		b.X[300] = float32(math.NaN())
		if loss, err := n.ForwardBackward(t.Context(), b, nil); err != nil || !math.IsNaN(loss) {
			t.Errorf("%s: loss %v, %v, want NaN", name, loss, err)
		}
	}
}

// Batches may change in size; none after the largest allocates.
func TestAllocations(t *testing.T) {
	for _, threads := range []int{1, 2} {
		n := must(t, NewTutorial, Config{Threads: threads})
		large, small := images(17), images(3)
		ctx := t.Context()
		step := func() {
			for _, b := range []Batch{large, small} {
				if _, err := n.ForwardBackward(ctx, b, func(int) {}); err != nil {
					t.Error(err)
				}
			}
			if _, _, err := n.Evaluate(ctx, small); err != nil {
				t.Error(err)
			}
		}
		if got := testing.AllocsPerRun(5, step); got != 0 {
			t.Errorf("%d threads: %v allocations", threads, got)
		}
	}
}

// bars are images whose label is where their bright bar is.
func bars(n int) Batch {
	b := noise(n, Side*Side, Classes)
	for i, y := range b.Y {
		for j := range 2 * Side {
			b.X[(i*Side+4+2*int(y))*Side+j] += 3
		}
	}
	return b
}

func TestLearning(t *testing.T) {
	for name, make := range networks {
		n := must(t, make, Config{Seed: 1})
		b := bars(20)
		losses := run(t, n, b, 30, 0.1) // half of the tutorial network is dropped in each
		loss, correct, err := n.Evaluate(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		if loss > losses[0]/2 || correct < 15 {
			t.Errorf("%s: losses %.2f, in the end %.2f and %d of 20 right", name, losses, loss, correct)
		}
	}
}

// Evaluate takes a batch in pieces and changes nothing.
func TestEvaluate(t *testing.T) {
	n, undisturbed := must(t, NewTutorial, Config{}), must(t, NewTutorial, Config{})
	b := images(evalBatch + 5)
	loss, correct, err := n.Evaluate(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	sum, right := 0.0, 0
	for i := range b.Y {
		l, c, err := n.Evaluate(t.Context(), Batch{X: b.X[i*n.pixels:][:n.pixels], Y: b.Y[i : i+1]})
		if err != nil {
			t.Fatal(err)
		}
		sum, right = sum+l, right+c
	}
	if math.Abs(loss-sum/float64(len(b.Y))) > 1e-12 || correct != right {
		t.Errorf("loss %v, %d right; one by one %v, %d", loss, correct, sum/float64(len(b.Y)), right)
	}
	if got, want := run(t, n, images(9), 2, 0.1), run(t, undisturbed, images(9), 2, 0.1); !slices.Equal(got, want) {
		t.Errorf("losses %v after evaluation, %v without", got, want)
	}
}

func TestMLPWidths(t *testing.T) {
	for _, c := range []struct {
		hidden []int
		want   []int // elements of all weights and biases
	}{
		{nil, []int{784 * 1024, 1024, 1024 * 1024, 1024, 1024 * 10, 10}},
		{[]int{5}, []int{784 * 5, 5, 5 * 10, 10}},
		{[]int{3, 4, 2}, []int{784 * 3, 3, 3 * 4, 4, 4 * 2, 2, 2 * 10, 10}},
	} {
		n, err := NewMLP(Config{}, c.hidden...)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, p := range n.Params() {
			got = append(got, p.Value.Len())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: parameters of %v elements, want %v", c.hidden, got, c.want)
		}
	}
	if _, err := NewMLP(Config{}, 8, 0); err == nil || !strings.Contains(err.Error(), "hidden layer 2") {
		t.Errorf("a layer without outputs: %v", err)
	}
}
