package tensor

import "peermesh/ops/tensor/internal/simd"

// A kernel folds src into dst, dst[i] = op(dst[i], src[i]), both of one length
// that is a multiple of the element size, at any address. The slices may be the
// same; if they overlap otherwise, the result is unspecified.
type kernel func(dst, src []byte)

// A column is what the host can compute with an element type. The columns side
// by side are the table [dtype][op] that every reduction goes through, and the
// one place where a faster kernel is put in: v has those of the processor.
type column struct {
	fold   [len(opRows)]kernel            // by OpCode; nil where the type has no such op
	scale  func(p []byte, factor float64) // PremulSum's step
	divide func(p []byte, n int)          // Avg's step
	holds  func(factor float64) (ok bool) // whether scale can take the factor
}

// floats are the kernels of elements T that are computed as C.
func floats[T Element, C float32 | float64](v simd.Kernels) column {
	return column{
		fold: [len(opRows)]kernel{
			opSum:       faster(v.Sum, sum[T, C]),
			opProduct:   faster(v.Product, product[T, C]),
			opMin:       faster(v.Min, minimum[T, C]),
			opMax:       faster(v.Max, maximum[T, C]),
			opAvg:       faster(v.Sum, sum[T, C]),
			opPremulSum: faster(v.Sum, sum[T, C]),
		},
		scale:  scaleBy[T, C](v.Product),
		divide: divideBy[T, C, C](v.Quotient),
		holds:  func(float64) bool { return true },
	}
}

// integers are the kernels of integers T. W, the widest of the same sign, holds
// every number of ranks, which T may not.
func integers[T, W integer](v simd.Kernels) column {
	return column{
		fold: [len(opRows)]kernel{
			opSum:       faster(v.Sum, sum[T, T]),
			opProduct:   faster(v.Product, product[T, T]),
			opMin:       faster(v.Min, minimum[T, T]),
			opMax:       faster(v.Max, maximum[T, T]),
			opAvg:       faster(v.Sum, sum[T, T]),
			opBitAnd:    faster(v.And, and[T, T]),
			opBitOr:     faster(v.Or, or[T, T]),
			opBitXor:    faster(v.Xor, xor[T, T]),
			opPremulSum: faster(v.Sum, sum[T, T]),
		},
		scale:  scaleBy[T, T](v.Product),
		divide: divideBy[T, T, W](v.Quotient),
		holds:  holds[T],
	}
}

// bools are the kernels of bool: sums and the greater of two say whether any is
// set, products and the lesser whether all are.
func bools(v simd.Kernels) column {
	return column{fold: [len(opRows)]kernel{
		opSum:     faster(v.Or, or[bool, uint8]),
		opProduct: faster(v.And, and[bool, uint8]),
		opMin:     faster(v.And, and[bool, uint8]),
		opMax:     faster(v.Or, or[bool, uint8]),
		opBitAnd:  faster(v.And, and[bool, uint8]),
		opBitOr:   faster(v.Or, or[bool, uint8]),
		opBitXor:  faster(v.Xor, xor[bool, uint8]),
	}}
}

// The portable kernels. Each is a loop of its own, because a Go function value is not inlined
// and a call an element costs ten times the arithmetic. T is the element as it
// lies in memory, C the type in which it is computed.

func sum[T Element, C number](dst, src []byte) {
	var s stage[T, C]
	for len(src) > 0 {
		d, v := s.next(&dst, &src)
		for i, x := range v[:len(d)] {
			d[i] += x
		}
		s.done()
	}
}

func product[T Element, C number](dst, src []byte) {
	var s stage[T, C]
	for len(src) > 0 {
		d, v := s.next(&dst, &src)
		for i, x := range v[:len(d)] {
			d[i] *= x
		}
		s.done()
	}
}

func minimum[T Element, C number](dst, src []byte) {
	var s stage[T, C]
	for len(src) > 0 {
		d, v := s.next(&dst, &src)
		for i, x := range v[:len(d)] {
			d[i] = min(d[i], x)
		}
		s.done()
	}
}

func maximum[T Element, C number](dst, src []byte) {
	var s stage[T, C]
	for len(src) > 0 {
		d, v := s.next(&dst, &src)
		for i, x := range v[:len(d)] {
			d[i] = max(d[i], x)
		}
		s.done()
	}
}

func and[T Element, C integer](dst, src []byte) {
	var s stage[T, C]
	for len(src) > 0 {
		d, v := s.next(&dst, &src)
		for i, x := range v[:len(d)] {
			d[i] &= x
		}
		s.done()
	}
}

func or[T Element, C integer](dst, src []byte) {
	var s stage[T, C]
	for len(src) > 0 {
		d, v := s.next(&dst, &src)
		for i, x := range v[:len(d)] {
			d[i] |= x
		}
		s.done()
	}
}

func xor[T Element, C integer](dst, src []byte) {
	var s stage[T, C]
	for len(src) > 0 {
		d, v := s.next(&dst, &src)
		for i, x := range v[:len(d)] {
			d[i] ^= x
		}
		s.done()
	}
}

// call is the kernel of a caller's function.
func call[T Element](dst, src []byte, f func(a, b T) T) {
	var s stage[T, T]
	for len(src) > 0 {
		d, v := s.next(&dst, &src)
		for i, x := range v[:len(d)] {
			d[i] = f(d[i], x)
		}
		s.done()
	}
}
