package tensor

import (
	"fmt"
	"io"
	"unsafe"
)

// A Memory holds the elements of tensors: a process's own memory (Host), a
// GPU's, a test's. Offsets and lengths are in bytes.
//
// A call whose range does not lie within the memory moves nothing and returns
// an error, a *RangeError where the memory knows its size. Calls on disjoint
// ranges may be made at the same time. The slice p is not kept.
type Memory interface {
	io.ReaderAt
	io.WriterAt

	// ReduceAt folds p into the memory, element by element: m = op(m, p). off
	// and len(p) are multiples of the element size; p may lie at any address.
	// Avg and PremulSum fold as Sum. A byte of a Bool counts as 1 if it is not 0,
	// and the result is 0 or 1. A memory beyond the host's reach may refuse a
	// Func: Tensor.ReduceAt does not ask it to.
	ReduceAt(p []byte, off int64, t DType, op Op) error
}

// A Viewer is a Memory that can lend its bytes, which spares a copy. View gives
// bytes [off, off+n), or nil if they do not lie within the memory.
type Viewer interface {
	View(off, n int64) []byte
}

// A RangeError says that bytes [Off, Off+N) do not lie within a memory or
// tensor of Size bytes.
type RangeError struct {
	Off, N, Size int64
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("tensor: %d bytes at %d are out of range of %d bytes", e.N, e.Off, e.Size)
}

// inRange checks that [off, off+n) lies within [0, size), without the sum, which
// may overflow.
func inRange(off, n, size int64) error {
	if off < 0 || n < 0 || off > size || n > size-off {
		return &RangeError{Off: off, N: n, Size: size}
	}
	return nil
}

// checkReduce checks the arguments of a ReduceAt, all but the range.
func checkReduce(n int, off int64, t DType, op Op) error {
	if err := op.Check(t); err != nil {
		return err
	}
	if n%t.Size() != 0 || off%int64(t.Size()) != 0 {
		return fmt.Errorf("tensor: reduce of %d bytes at %d cuts a %v in two", n, off, t)
	}
	return nil
}

// Host is a process's own memory. Its elements are in little-endian order, the
// host's and the wire's.
type Host []byte

// ReadAt copies bytes [off, off+len(p)) to p.
func (h Host) ReadAt(p []byte, off int64) (int, error) {
	if err := inRange(off, int64(len(p)), int64(len(h))); err != nil {
		return 0, err
	}
	return copy(p, h[off:]), nil
}

// WriteAt copies p to bytes [off, off+len(p)). p may overlap them.
func (h Host) WriteAt(p []byte, off int64) (int, error) {
	if err := inRange(off, int64(len(p)), int64(len(h))); err != nil {
		return 0, err
	}
	return copy(h[off:], p), nil
}

// ReduceAt folds p into bytes [off, off+len(p)). p may be those very bytes; if
// it overlaps them otherwise, their values are unspecified.
func (h Host) ReduceAt(p []byte, off int64, t DType, op Op) error {
	if err := checkReduce(len(p), off, t, op); err != nil {
		return err
	}
	if err := inRange(off, int64(len(p)), int64(len(h))); err != nil {
		return err
	}
	op.kernel(t)(h[off:off+int64(len(p))], p)
	return nil
}

// View lends bytes [off, off+n).
func (h Host) View(off, n int64) []byte {
	if inRange(off, n, int64(len(h))) != nil {
		return nil
	}
	return h[off : off+n : off+n]
}

// hostAlign is the alignment of memory from New: a cache line, and the widest
// vector register.
const hostAlign = 64

// newHost is zeroed memory of n bytes at a multiple of hostAlign.
func newHost(n int64) Host {
	p := make([]byte, n+hostAlign-1)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(p))) % hostAlign
	return p[skip:][:n:n]
}
