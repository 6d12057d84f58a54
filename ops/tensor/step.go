package tensor

import (
	"fmt"
	"math"
	"unsafe"
)

// A Stepper is a Memory beyond the host's reach that takes steps where it is, which
// spares a copy there and back. Offsets and lengths are in bytes and lie within the
// memory, in whole elements; the results are, to the bit, those of the host.
type Stepper interface {
	ScaleAt(off, n int64, t DType, factor float64) error // as PremulSum's step
	DivideAt(off, n int64, t DType, by int) error        // as Avg's
}

// Before is the step that each rank takes with its own elements before they are
// folded: PremulSum multiplies them by its factor, in place. The others do
// nothing.
func (o Op) Before(x Tensor) error {
	if err := o.Check(x.dtype); err != nil || o.code != opPremulSum {
		return err
	}
	if s, ok := x.memory.(Stepper); ok {
		return s.ScaleAt(x.off, x.Bytes(), x.dtype, o.factor)
	}
	return x.onHost(0, x.Bytes(), func(p []byte) error {
		dtypes[x.dtype].scale(p, o.factor)
		return nil
	})
}

// After is the step that follows the fold over n ranks, wherever its result is
// kept: Avg divides by n, in place. Integers truncate toward zero, as Go's / and
// NCCL do; float16 and bfloat16 are divided as float32 and rounded once. The
// other ops do nothing.
func (o Op) After(x Tensor, n int) error {
	if err := o.Check(x.dtype); err != nil || o.code != opAvg {
		return err
	}
	if n < 1 {
		return fmt.Errorf("tensor: %v over %d ranks", o, n)
	}
	if s, ok := x.memory.(Stepper); ok {
		return s.DivideAt(x.off, x.Bytes(), x.dtype, n)
	}
	return x.onHost(0, x.Bytes(), func(p []byte) error {
		dtypes[x.dtype].divide(p, n)
		return nil
	})
}

// Steps reports whether Before or After does anything, so that a fold alone
// would give another result.
func (o Op) Steps() bool { return o.code == opPremulSum || o.code == opAvg }

// onHost has f change the tensor's bytes [off, off+n) where they lie, if the
// memory lends them, and else block by block in a copy that it writes back.
func (t Tensor) onHost(off, n int64, f func(p []byte) error) error {
	if p, ok := t.View(off, n); ok {
		return f(p)
	}
	block := make([]byte, min(n, copyBlock))
	for end := off + n; off < end; off += int64(len(block)) {
		block = block[:min(int64(len(block)), end-off)]
		if _, err := t.ReadAt(block, off); err != nil {
			return err
		}
		if err := f(block); err != nil {
			return err
		}
		if _, err := t.WriteAt(block, off); err != nil {
			return err
		}
	}
	return nil
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
