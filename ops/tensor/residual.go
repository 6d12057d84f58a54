package tensor

import (
	"unsafe"

	"peermesh/ops/tensor/internal/simd"
)

// Residual is what remains of src when dst goes in its place: it leaves src−dst in each
// element of dst, and 0 where that is not finite, since what keeps an error and adds it to
// what comes next would never be rid of it. src is as long as dst, or longer; they are the
// same memory or share none.
func Residual[T float32 | float64](dst, src []T) {
	src = src[:len(dst)]
	kernel := simd.Float64.Residual
	if unsafe.Sizeof(T(0)) == 4 {
		kernel = simd.Float32.Residual
	}
	if kernel.Usable() {
		kernel.Fold(bytesOf(dst), bytesOf(src))
		return
	}
	residual(dst, src)
}

func residual[T float32 | float64](dst, src []T) {
	for i, v := range dst {
		d := src[i] - v
		if d-d != 0 {
			d = 0
		}
		dst[i] = d
	}
}
