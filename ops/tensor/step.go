package tensor

import "fmt"

// Before is the step that each rank takes with its own elements before they are
// folded: PremulSum multiplies them by its factor, in place. The others do
// nothing.
func (o Op) Before(x Tensor) error {
	if err := o.Check(x.dtype); err != nil || o.code != opPremulSum {
		return err
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
