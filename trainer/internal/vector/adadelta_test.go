package vector

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// reference is the step of one element, each operation rounded on its own.
func reference(x, grad, sq, acc float32, a *Adadelta) (nx, nsq, nacc float32) {
	g := float32(a.Sign * grad)
	if a.Decay != 0 {
		g += float32(a.Decay * x)
	}
	sq = float32(a.Rho*sq) + float32(float32(a.Fresh*g)*g)
	root := func(v float32) float32 { return float32(math.Sqrt(float64(v + a.Eps))) }
	d := float32(float32(root(acc)/root(sq)) * g)
	acc = float32(a.Rho*acc) + float32(float32(a.Fresh*d)*d)
	return x - float32(a.LR*d), sq, acc
}

// settings are PyTorch's defaults and what takes the other way at each branch.
var settings = []Adadelta{
	{LR: 1, Rho: 0.9, Fresh: 1 - 0.9, Eps: 1e-6, Sign: 1},
	{LR: 0.5, Rho: 0.9, Fresh: 1 - 0.9, Eps: 1e-6, Decay: 0.01, Sign: 1},
	{LR: 2, Rho: 0, Fresh: 1, Eps: 1e-3, Decay: 0.5, Sign: -1},
	{LR: 0, Rho: 1, Fresh: 0, Sign: -1},
}

// awkward are numbers at which a careless kernel differs.
var awkward = []float32{0, float32(math.Copysign(0, -1)), 1, -1, math.SmallestNonzeroFloat32, 1e-38, -1e-41,
	math.MaxFloat32, -math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}

// some are n numbers of all magnitudes, with awkward ones among them. Averages of squares
// are not negative.
func some(r *rand.Rand, n int, squares bool) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = float32(r.NormFloat64() * math.Pow(10, float64(r.IntN(13)-8)))
		if r.IntN(8) == 0 {
			s[i] = awkward[r.IntN(len(awkward))]
		}
		if squares {
			s[i] = float32(math.Abs(float64(s[i])))
		}
	}
	return s
}

// same is equal bits, or two NaNs: which of two NaNs a sum keeps is not for the language to say.
func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

func TestAdadelta(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for k := range settings {
		a := &settings[k]
		for _, n := range []int{0, 1, 7, 8, 9, 16, 63, 1000} {
			t.Run(fmt.Sprint(k, " of ", n), func(t *testing.T) { moves(t, r, a, n) })
		}
	}
}

// moves takes three steps, and looks at every element after each.
func moves(t *testing.T, r *rand.Rand, a *Adadelta, n int) {
	x, sq, acc := some(r, n, false), some(r, n, true), some(r, n, true)
	for range 3 {
		grad := some(r, n, false)
		wasX, wasSq, wasAcc := append([]float32(nil), x...), append([]float32(nil), sq...), append([]float32(nil), acc...)
		done := a.Move(x, grad, sq, acc)
		if want := n / Lanes * Lanes; available && done != want || !available && done != 0 {
			t.Fatalf("moved %d of %d elements", done, n)
		}
		for i := range x {
			nx, nsq, nacc := wasX[i], wasSq[i], wasAcc[i]
			if i < done {
				nx, nsq, nacc = reference(nx, grad[i], nsq, nacc, a)
			}
			if !same(x[i], nx) || !same(sq[i], nsq) || !same(acc[i], nacc) {
				t.Fatalf("element %d of %d: x %v, squares %v, moves %v; want %v, %v, %v",
					i, n, x[i], sq[i], acc[i], nx, nsq, nacc)
			}
		}
	}
}

// A slice that is too short panics before anything is read or written beyond it.
func TestShort(t *testing.T) {
	if !available {
		t.Skip("no kernels for this processor and build")
	}
	for k := range 3 {
		s := [3][]float32{make([]float32, 16), make([]float32, 16), make([]float32, 16)}
		s[k] = make([]float32, 15, 15)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("argument %d of 15 elements for 16 is taken", k)
				}
			}()
			settings[0].Move(make([]float32, 16), s[0], s[1], s[2])
		}()
	}
}

func BenchmarkAdadelta(b *testing.B) {
	const n = 1 << 16
	r := rand.New(rand.NewPCG(1, 2))
	x, grad, sq, acc := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range grad {
		grad[i] = float32(r.NormFloat64())
	}
	b.Run("kernel", func(b *testing.B) {
		for b.Loop() {
			settings[0].Move(x, grad, sq, acc)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/element")
	})
	b.Run("reference", func(b *testing.B) {
		for b.Loop() {
			for i := range x {
				x[i], sq[i], acc[i] = reference(x[i], grad[i], sq[i], acc[i], &settings[0])
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/element")
	})
}
