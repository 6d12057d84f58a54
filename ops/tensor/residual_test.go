package tensor

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestResidual(t *testing.T) {
	nan, inf, most := math.NaN(), math.Inf(1), math.MaxFloat64
	dst := []float64{1, 3, inf, -inf, nan, 1, -most, inf, 0}
	src := []float64{2, 1, 1, 1, 1, nan, most, inf, math.Copysign(0, -1), 7}
	want := []float64{1, -2, 0, 0, 0, 0, 0, 0, math.Copysign(0, -1)}
	if Residual(dst, src); !bytes.Equal(bytesOf(dst), bytesOf(want)) {
		t.Errorf("%v, want %v", dst, want)
	}
	singles := []float32{1, -math.MaxFloat32, float32(inf)}
	if Residual(singles, []float32{0.5, math.MaxFloat32, float32(inf)}); !slices.Equal(singles, []float32{-0.5, 0, 0}) {
		t.Errorf("of float32: %v", singles)
	}
	defer func() {
		if recover() == nil {
			t.Error("a src that is shorter than dst is taken")
		}
	}()
	Residual(make([]float32, 8), make([]float32, 7))
}

// Of any bits and any length the processor's kernel leaves what the portable one does.
func TestResidualTwins(t *testing.T) {
	residualTwins[float32](t)
	residualTwins[float64](t)
}

func residualTwins[T float32 | float64](t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for n := range 70 {
		dst, src := make([]T, n+1)[1:], make([]T, n+3)[3:]
		for _, x := range [][]byte{bytesOf(dst), bytesOf(src)} {
			for i := range x {
				x[i] = byte(r.Uint32())
			}
		}
		for i := range n / 4 {
			dst[r.IntN(n)] = src[i] + T(r.NormFloat64()) // ordinary ones
		}
		want := slices.Clone(dst)
		residual(want, src)
		if Residual(dst, src); !bytes.Equal(bytesOf(dst), bytesOf(want)) {
			t.Fatalf("%d elements of %T: %v, want %v", n, T(0), dst, want)
		}
	}
}
