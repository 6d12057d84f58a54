package tensor

import (
	"unsafe"

	"peermesh/ops/tensor/internal/simd"
)

// faster is the processor's kernel v, or the portable one where it has none. The
// two give the same bits.
func faster(v simd.Kernel, portable kernel) kernel {
	if v.Usable() {
		return v.Fold
	}
	return portable
}

// scaleBy is scale, by the products of v where that gives the same.
func scaleBy[T Element, C number](v simd.Kernel) func(p []byte, factor float64) {
	return func(p []byte, factor float64) {
		if !each[T](v, p, C(factor)) {
			scale[T, C](p, factor)
		}
	}
}

// divideBy is divide, by the quotients of v where that gives the same.
func divideBy[T Element, C, W number](v simd.Kernel) func(p []byte, n int) {
	return func(p []byte, n int) {
		if !each[T](v, p, C(n)) {
			divide[T, C, W](p, n)
		}
	}
}

// each folds x into every element of p by v, and reports whether it can: v takes
// an element of type T for x, and T may be narrower than C. Float16, say, has all
// numbers of ranks up to 2048 and no ⅓.
func each[T Element, C number](v simd.Kernel, p []byte, x C) bool {
	if !v.Usable() {
		return false
	}
	var bytes [8]byte
	var zero T
	element := bytes[:unsafe.Sizeof(zero)]
	narrow, back := [1]C{x}, [1]C{}
	store[T](element, narrow[:])
	load[T](back[:], element)
	if back != narrow {
		return false
	}
	v.FoldEach(p, element)
	return true
}
