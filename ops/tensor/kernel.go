package tensor

import (
	"math"
	"unsafe"
)

// A kernel folds src into dst, dst[i] = op(dst[i], src[i]), both of one length
// that is a multiple of the element size, at any address. The slices may be the
// same; if they overlap otherwise, the result is unspecified.
type kernel func(dst, src []byte)

// A column is what the host can compute with an element type. The columns side
// by side are the table [dtype][op] that every reduction goes through, and the
// one place where a faster kernel is put in.
type column struct {
	fold   [len(opRows)]kernel            // by OpCode; nil where the type has no such op
	scale  func(p []byte, factor float64) // PremulSum's step
	divide func(p []byte, n int)          // Avg's step
	holds  func(factor float64) (ok bool) // whether scale can take the factor
}

// floats are the kernels of elements T that are computed as C.
func floats[T Element, C float32 | float64]() column {
	return column{
		fold: [len(opRows)]kernel{
			opSum:       sum[T, C],
			opProduct:   product[T, C],
			opMin:       minimum[T, C],
			opMax:       maximum[T, C],
			opAvg:       sum[T, C],
			opPremulSum: sum[T, C],
		},
		scale:  scale[T, C],
		divide: divide[T, C, C],
		holds:  func(float64) bool { return true },
	}
}

// integers are the kernels of integers T. W, the widest of the same sign, holds
// every number of ranks, which T may not.
func integers[T, W integer]() column {
	return column{
		fold: [len(opRows)]kernel{
			opSum:       sum[T, T],
			opProduct:   product[T, T],
			opMin:       minimum[T, T],
			opMax:       maximum[T, T],
			opAvg:       sum[T, T],
			opBitAnd:    and[T, T],
			opBitOr:     or[T, T],
			opBitXor:    xor[T, T],
			opPremulSum: sum[T, T],
		},
		scale:  scale[T, T],
		divide: divide[T, T, W],
		holds:  holds[T],
	}
}

// bools are the kernels of bool: sums and the greater of two say whether any is
// set, products and the lesser whether all are.
func bools() column {
	return column{fold: [len(opRows)]kernel{
		opSum:     or[bool, uint8],
		opProduct: and[bool, uint8],
		opMin:     and[bool, uint8],
		opMax:     or[bool, uint8],
		opBitAnd:  and[bool, uint8],
		opBitOr:   or[bool, uint8],
		opBitXor:  xor[bool, uint8],
	}}
}

// Each kernel is a loop of its own, because a Go function value is not inlined
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

// scale and divide have one operand. They take it for both.

func scale[T Element, C number](p []byte, factor float64) {
	var s stage[T, C]
	f := C(factor)
	for q := p; len(q) > 0; {
		d, _ := s.next(&p, &q)
		for i := range d {
			d[i] *= f
		}
		s.done()
	}
}

func divide[T Element, C, W number](p []byte, n int) {
	var s stage[T, C]
	by := W(n)
	for q := p; len(q) > 0; {
		d, _ := s.next(&p, &q)
		for i, x := range d {
			d[i] = C(W(x) / by)
		}
		s.done()
	}
}

// holds reports whether an integer type has the value f. The bounds are powers
// of two, which float64 has, where the greatest value of a type need not be one.
func holds[T integer](f float64) bool {
	var zero T
	below, above := 0., math.Ldexp(1, 8*int(unsafe.Sizeof(zero)))
	if zero-1 < 0 {
		below, above = -above/2, above/2
	}
	return f == math.Trunc(f) && below <= f && f < above
}
