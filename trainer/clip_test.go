package trainer

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"peermesh/ops/tensor"
)

func ExampleClipGradNorm() {
	w := &Param{Name: "w", Value: tensor.Of([]float64{0, 0}), Grad: tensor.Of([]float64{30, 40})}
	norm, err := ClipGradNorm([]*Param{w}, 5)
	if err != nil {
		fmt.Println(err)
		return
	}
	grad, _ := tensor.Data[float64](w.Grad)
	fmt.Printf("%.0f, now %.3f\n", norm, grad)
	// Output: 50, now [3.000 4.000]
}

// TestClipTakesAllTogether has parameters of both types, and one without a
// gradient.
func TestClipTakesAllTogether(t *testing.T) {
	a, b := []float32{3, 0, 0, 0, 0}, []float64{0, 4}
	params := []*Param{
		{Value: tensor.New(tensor.Float32, 5), Grad: tensor.Of(a)},
		{Value: tensor.New(tensor.Float64, 7)},
		{Value: tensor.New(tensor.Float64, 2), Grad: tensor.Of(b)},
	}
	norm, err := ClipGradNorm(params, 5.1)
	if err != nil || norm != 5 || a[0] != 3 || b[1] != 4 {
		t.Errorf("a norm of %v, %v, gradients %v %v", norm, err, a, b)
	}
	if norm, err = ClipGradNorm(params, 2.5); err != nil || norm != 5 {
		t.Errorf("a norm of %v, %v", norm, err)
	}
	if math.Abs(float64(a[0])-1.5) > 1e-6 || math.Abs(b[1]-2) > 1e-6 {
		t.Errorf("gradients %v %v", a, b)
	}
	if norm, err := ClipGradNorm(nil, 1); norm != 0 || err != nil {
		t.Errorf("of nothing %v, %v", norm, err)
	}
	if n := testing.AllocsPerRun(10, func() { _, _ = ClipGradNorm(params, 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestClipRefuses(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		grad := []float64{1, bad, 2}
		before := slices.Clone(grad)
		norm, err := ClipGradNorm([]*Param{{Value: tensor.New(tensor.Float64, 3), Grad: tensor.Of(grad)}}, 1)
		if err == nil || !strings.Contains(err.Error(), "the gradients have a norm of") || !(math.IsNaN(norm) || math.IsInf(norm, 1)) {
			t.Errorf("%v: a norm of %v, %v", bad, norm, err)
		}
		if grad[0] != before[0] || grad[2] != before[2] {
			t.Errorf("%v: gradients %v", bad, grad)
		}
	}
	one := func(name string, grad ...float64) *Param {
		return &Param{Name: name, Value: tensor.New(tensor.Float64, len(grad)), Grad: tensor.Of(grad)}
	}
	for says, params := range map[string][]*Param{
		`a norm of NaN: that of "c" is the first that is not finite`:            {one("a", 1), {Name: "b", Value: tensor.New(tensor.Float64, 1)}, one("c", 2, math.NaN()), one("d", math.NaN())},
		`a norm of +Inf: that of "parameter 1" is the first that is not finite`: {one("", 1), one("", math.Inf(-1))},
		`a norm of +Inf`: {one("a", 1e200)},
	} {
		_, err := ClipGradNorm(params, 1)
		if e, ok := errors.AsType[*NormError](err); !ok || err.Error() != "trainer: clip: the gradients have "+says || e.Norm == 0 {
			t.Errorf("%s: %v", says, err)
		}
	}
	for _, most := range []float64{-1, math.NaN()} {
		if _, err := ClipGradNorm(nil, most); err == nil || !strings.HasPrefix(err.Error(), "trainer: clip: a norm of ") {
			t.Errorf("%v: %v", most, err)
		}
	}
	if _, err := ClipGradNorm([]*Param{nil}, 1); err == nil || err.Error() != "trainer: clip: a parameter is nil" {
		t.Error(err)
	}
}

func TestSumOfSquares(t *testing.T) {
	for n := range 11 {
		x, want := make([]float32, n), 0.0
		for i := range x {
			x[i] = float32(i + 1)
			want += float64((i + 1) * (i + 1))
		}
		if got := sumOfSquares(x); got != want {
			t.Errorf("of %d it is %v, want %v", n, got, want)
		}
	}
	if got := sumOfSquares([]float32{math.MaxFloat32}); math.IsInf(got, 0) {
		t.Error("float32 overflows")
	}
}

func BenchmarkClipGradNorm(b *testing.B) {
	p := &Param{Value: tensor.New(tensor.Float32, 1<<20), Grad: tensor.New(tensor.Float32, 1<<20)}
	for b.Loop() {
		if _, err := ClipGradNorm([]*Param{p}, 1); err != nil {
			b.Fatal(err)
		}
	}
}
