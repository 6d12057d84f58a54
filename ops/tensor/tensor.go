package tensor

import (
	"fmt"
	"math"
	"slices"
)

// A Tensor is a dense array of elements of one type in some Memory: a small
// value that shares the elements, as a slice does. The zero Tensor has no
// elements and a nil Memory.
type Tensor struct {
	memory Memory
	dtype  DType
	off    int64 // of the first element in memory, in bytes
	n      int   // elements
	shape  []int // nil: one dimension, so that Slice does not allocate
}

// Of is a one-dimensional tensor that shares x's elements.
func Of[T Element](x []T) Tensor {
	return Tensor{memory: Host(bytesOf(x)), dtype: dtypeOf[T](), n: len(x)}
}

// In is a tensor of that type and shape at the start of m. Without a shape it
// is a scalar. In panics, as make does, if t is not valid, if a dimension is
// negative or if the size overflows. Whether m is large enough shows when the
// elements are used.
func In(m Memory, t DType, shape ...int) Tensor {
	return Tensor{memory: m, dtype: t, n: count(t, shape), shape: cloneShape(shape)}
}

// New is a tensor of zeros in the host's memory, at a multiple of 64 bytes. It
// panics where In does.
func New(t DType, shape ...int) Tensor {
	return In(newHost(int64(count(t, shape))*int64(t.Size())), t, shape...)
}

// count is the number of elements of a shape. It panics if a tensor of that
// type and shape cannot be.
func count(t DType, shape []int) int {
	if !t.Valid() {
		panic(fmt.Sprintf("tensor: %v is not an element type", t))
	}
	limit := math.MaxInt / t.Size()
	n := 1
	for _, d := range shape {
		if d < 0 || d > 0 && n > limit/d {
			panic(fmt.Sprintf("tensor: no %v can have the shape %v", t, shape))
		}
		n *= d
	}
	return n
}

// cloneShape is a copy that is not nil, which would stand for one dimension.
func cloneShape(shape []int) []int {
	return append(make([]int, 0, len(shape)), shape...)
}

// Data is the reverse of Of: the elements as a slice that shares them. It fails
// if t's elements are not of type T or not in memory that the host can address,
// aligned; and if they are to be bools and a byte is neither 0 nor 1.
func Data[T Element](t Tensor) ([]T, bool) {
	if t.dtype != dtypeOf[T]() {
		return nil, false
	}
	p, ok := t.View(0, t.Bytes())
	if !ok || t.dtype == Bool && !areBools(p) {
		return nil, false
	}
	return elements[T](p)
}

// Shape is the size of each dimension, the outermost first. The caller may
// change it.
func (t Tensor) Shape() []int {
	if t.shape == nil {
		return []int{t.n}
	}
	return slices.Clone(t.shape)
}

// Len is the number of elements.
func (t Tensor) Len() int { return t.n }

// Bytes is the size of all elements in bytes.
func (t Tensor) Bytes() int64 { return int64(t.n) * int64(t.dtype.Size()) }

// DType is the element type.
func (t Tensor) DType() DType { return t.dtype }

// Memory is where the elements are, nil for the zero Tensor.
func (t Tensor) Memory() Memory { return t.memory }

// Offset is where in Memory the first element is, in bytes.
func (t Tensor) Offset() int64 { return t.off }

// Reshape is the same elements, in the same order, in another shape. The number
// of elements must stay.
func (t Tensor) Reshape(shape ...int) (Tensor, error) {
	n := 1
	for _, d := range shape {
		if d < 0 || d > 0 && n > math.MaxInt/d {
			return Tensor{}, fmt.Errorf("tensor: reshape of %v to %v", t, shape)
		}
		n *= d
	}
	if n != t.n {
		return Tensor{}, fmt.Errorf("tensor: reshape of %v to %v, of %d elements", t, shape, n)
	}
	t.shape = cloneShape(shape)
	return t, nil
}

// Slice is elements [i, j) in flat order, whatever the shape, as a tensor of one
// dimension that shares them. It panics out of range, as slicing does.
func (t Tensor) Slice(i, j int) Tensor {
	if i < 0 || j < i || j > t.n {
		panic(fmt.Sprintf("tensor: slice [%d:%d] of %v, of %d elements", i, j, t, t.n))
	}
	t.off += int64(i) * int64(t.dtype.Size())
	t.n, t.shape = j-i, nil
	return t
}

// ReadAt copies the tensor's bytes [off, off+len(p)) to p. They must lie within
// the tensor, not only within its memory.
func (t Tensor) ReadAt(p []byte, off int64) (int, error) {
	if err := inRange(off, int64(len(p)), t.Bytes()); err != nil || len(p) == 0 {
		return 0, err
	}
	return t.memory.ReadAt(p, t.off+off)
}

// WriteAt copies p to the tensor's bytes [off, off+len(p)). Where they are bools,
// a byte that is not 0 is written as 1.
func (t Tensor) WriteAt(p []byte, off int64) (int, error) {
	if err := inRange(off, int64(len(p)), t.Bytes()); err != nil || len(p) == 0 {
		return 0, err
	}
	if t.dtype == Bool && !areBools(p) {
		return t.writeBools(p, off)
	}
	return t.memory.WriteAt(p, t.off+off)
}

// ReduceAt folds p, elements of the tensor's type, into the tensor's bytes
// [off, off+len(p)). A Func is computed on the host, wherever the memory is.
func (t Tensor) ReduceAt(p []byte, off int64, op Op) error {
	if err := checkReduce(len(p), off, t.dtype, op); err != nil {
		return err
	}
	if err := inRange(off, int64(len(p)), t.Bytes()); err != nil || len(p) == 0 {
		return err
	}
	if op.custom != nil {
		return t.onHost(off, int64(len(p)), func(q []byte) error {
			op.custom.fold(q, p[:len(q)])
			p = p[len(q):]
			return nil
		})
	}
	return t.memory.ReduceAt(p, t.off+off, t.dtype, op)
}

// View lends the tensor's bytes [off, off+n), if its memory is a Viewer and they
// lie within the tensor.
func (t Tensor) View(off, n int64) ([]byte, bool) {
	v, ok := t.memory.(Viewer)
	if !ok || inRange(off, n, t.Bytes()) != nil {
		return nil, false
	}
	p := v.View(t.off+off, n)
	return p, int64(len(p)) == n
}

// String is the type and the shape, as in "float32[2 3]", never the elements.
func (t Tensor) String() string {
	return fmt.Sprintf("%v%v", t.dtype, t.Shape())
}
