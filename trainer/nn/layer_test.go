package nn

import (
	"math"
	"slices"
	"testing"

	"peermesh/trainer/nn/internal/draw"
)

func TestMaxPool(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		square [4]float32
		want   float32
		which  uint8
	}{
		{[4]float32{4, 3, 2, 1}, 4, 0},
		{[4]float32{1, 4, 3, 2}, 4, 1},
		{[4]float32{-4, -3, -1, -2}, -1, 2},
		{[4]float32{-inf, -3, -2, 0}, 0, 3},
		{[4]float32{2, 5, 5, 5}, 5, 1}, // the first of equals, as torch
		{[4]float32{0, 0, 0, 0}, 0, 0},
		{[4]float32{-inf, -inf, inf, -inf}, inf, 2},
		{[4]float32{nan, 1, 2, 3}, nan, 0},
		{[4]float32{1, -nan, 2, 3}, nan, 1},
	} {
		y, which := make([]float32, 1), make([]uint8, 1)
		maxPool(y, which, c.square[:], 2, 2)
		if y[0] != c.want && !(y[0] != y[0] && c.want != c.want) || c.want == c.want && which[0] != c.which {
			t.Errorf("%v: %v from place %d, want %v from %d", c.square, y[0], which[0], c.want, c.which)
		}
	}
}

func TestMaxPoolOddSides(t *testing.T) {
	z := []float32{
		1, 2, 9,
		3, 0, 9,
		9, 9, 9,

		5, 6, 9,
		7, 8, 9,
		9, 9, 9,
	}
	y, which := make([]float32, 2), make([]uint8, 2)
	maxPool(y, which, z, 3, 3)
	if !slices.Equal(y, []float32{3, 8}) || !slices.Equal(which, []uint8{2, 3}) {
		t.Errorf("got %v from %v", y, which)
	}
}

func TestUnpool(t *testing.T) {
	dz := slices.Repeat([]float32{7}, 4*6)
	unpool(dz, 6, []float32{1, 2, 3, 4}, []uint8{0, 3, 1, 2}, 2)
	want := []float32{
		1, 0, 0, 0, 7, 7,
		0, 0, 0, 2, 7, 7,
		0, 3, 0, 0, 7, 7,
		0, 0, 4, 0, 7, 7,
	}
	if !slices.Equal(dz, want) {
		t.Errorf("got %v, want %v", dz, want)
	}
}

// Dropout drops what it says, scales the rest, and draws for each run once.
func TestDropout(t *testing.T) {
	const n, p = 20000, 0.3
	for _, size := range []int{1, 4} {
		y := slices.Repeat([]float32{0.7}, n*size)
		dropout(y, size, p, draw.Stream(1))
		dropped := 0
		for i := 0; i < len(y); i += size {
			if slices.Max(y[i:i+size]) != slices.Min(y[i:i+size]) {
				t.Fatalf("run %d is torn: %v", i/size, y[i:i+size])
			}
			switch y[i] {
			case 0:
				dropped++
			case 0.7 * float32(1/0.7):
			default:
				t.Fatalf("element %d is %v", i, y[i])
			}
		}
		if deviation := math.Sqrt(n * p * (1 - p)); math.Abs(float64(dropped)-n*p) > 4*deviation {
			t.Errorf("dropped %d of %d", dropped, n)
		}
	}
}

func TestGate(t *testing.T) {
	y := []float32{-2, 0, 3, float32(math.NaN())}
	relu(y)
	dy := []float32{1, 2, 3, 4}
	gate(dy, y, 2)
	if !slices.Equal(dy, []float32{0, 0, 6, 8}) || y[0] != 0 || y[3] == y[3] {
		t.Errorf("relu gives %v, its gradient %v", y, dy)
	}
}

func TestNLL(t *testing.T) {
	z := []float32{1, 2, 3, 1000, 0, -1000}
	dz := make([]float32, len(z))
	loss, correct := nll(z, []uint8{0, 0}, 3, dz)
	sum := math.Exp(-2) + math.Exp(-1) + 1
	if math.Abs(loss-(2+math.Log(sum))) > 1e-12 || correct != 1 {
		t.Errorf("loss %v, want %v; %d right, want 1", loss, 2+math.Log(sum), correct)
	}
	want := []float64{(math.Exp(-2)/sum - 1) / 2, math.Exp(-1) / sum / 2, 1 / sum / 2, 0, 0, 0}
	for i, w := range want {
		if math.Abs(float64(dz[i])-w) > 1e-7 {
			t.Errorf("dz[%d] = %v, want %v", i, dz[i], w)
		}
	}
}
