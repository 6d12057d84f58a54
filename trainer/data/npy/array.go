package npy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"peermesh/ops/tensor"
	"peermesh/trainer/internal/tensorfile"
)

// An Array is the header of one in a file, and the means to read the rest. Its
// methods may be called by several goroutines, if the ReaderAt allows it, as files do.
type Array struct {
	header
	r      io.ReaderAt
	closer io.Closer
}

// Open reads the header of a file. The caller closes the Array.
func Open(path string) (*Array, error) {
	f, size, err := openFile(path)
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	h, err := readHeader(f, size)
	if err != nil {
		return nil, fmt.Errorf("npy: %s: %w", path, errors.Join(err, f.Close()))
	}
	return &Array{h, f, f}, nil
}

func openFile(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", path, errors.Join(err, f.Close()))
	}
	return f, info.Size(), nil
}

// New is Open of size bytes that r has. The Array is usable as long as r is.
func New(r io.ReaderAt, size int64) (*Array, error) {
	h, err := readHeader(r, size)
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	return &Array{header: h, r: r}, nil
}

// Close closes the file of Open. Of other arrays it does nothing.
func (a *Array) Close() error {
	if a.closer == nil {
		return nil
	}
	return a.closer.Close()
}

// DType is the element type.
func (a *Array) DType() tensor.DType { return a.dtype }

// Shape is the size of each dimension, the outermost first; none for a scalar. The
// caller owns the slice.
func (a *Array) Shape() []int { return slices.Clone(a.shape) }

// Fortran reports whether the file has the array's first dimension as the fastest.
func (a *Array) Fortran() bool { return a.fortran }

// Read is the whole array, in C's order, in new memory of the host.
func (a *Array) Read() (tensor.Tensor, error) {
	t := tensor.New(a.dtype, a.shape...)
	p, _ := t.View(0, t.Bytes()) // the host's memory can be seen
	if err := a.read(p, 0); err != nil {
		return tensor.Tensor{}, err
	}
	if a.fortran && len(a.shape) > 1 {
		transpose(p, slices.Clone(p), a.shape, a.dtype.Size())
	}
	return t, nil
}

// read fills p with elements from byte off of them, in the file's order of
// dimensions and the host's of bytes.
func (a *Array) read(p []byte, off int64) error {
	if err := tensorfile.ReadFull(a.r, p, a.data+off); err != nil {
		return fmt.Errorf("npy: reading %v%v: %w", a.dtype, a.shape, err)
	}
	if size := a.dtype.Size(); a.big && size > 1 {
		for e := range slices.Chunk(p, size) {
			slices.Reverse(e)
		}
	}
	if a.dtype == tensor.Bool { // what a bool of another byte is, Go does not say
		for i, v := range p {
			if v != 0 {
				p[i] = 1
			}
		}
	}
	return nil
}

// transpose writes elements of src, whose first dimension is the fastest, to dst,
// whose last one is.
func transpose(dst, src []byte, shape []int, size int) {
	at := make([]int, len(shape)) // of the next element of dst
	strides := make([]int, len(shape))
	stride := size
	for d, n := range shape {
		strides[d] = stride
		stride *= n
	}
	from := 0
	for to := 0; to < len(dst); to += size {
		copy(dst[to:to+size], src[from:])
		for d := len(shape) - 1; d >= 0; d-- { // as a clock's hands go on
			at[d]++
			from += strides[d]
			if at[d] < shape[d] {
				break
			}
			from -= at[d] * strides[d]
			at[d] = 0
		}
	}
}

// A RowSet is an array as a set of samples: its slices along the first dimension,
// each in C's order. Package data takes it as a Dataset.
type RowSet[E tensor.Element] struct {
	array *Array
	n     int
	width int // elements of a row
	whole []E // of arrays that cannot be read by rows
}

// Rows is a's rows, of type E, which must be that of the array. They are read one
// by one when they are asked for; where the array is in Fortran's order, all of
// them at once and now.
func Rows[E tensor.Element](a *Array) (*RowSet[E], error) {
	if t := tensor.Of[E](nil).DType(); t != a.dtype {
		return nil, fmt.Errorf("npy: rows of %v: the array is %v%v", t, a.dtype, a.shape)
	}
	if len(a.shape) == 0 {
		return nil, errors.New("npy: a scalar has no rows")
	}
	s := &RowSet[E]{array: a, n: a.shape[0], width: 1}
	for _, d := range a.shape[1:] {
		s.width *= d
	}
	if a.fortran && len(a.shape) > 1 {
		t, err := a.Read()
		if err != nil {
			return nil, err
		}
		s.whole, _ = tensor.Data[E](t)
	}
	return s, nil
}

// Len is the number of rows.
func (s *RowSet[E]) Len() int { return s.n }

// At is row i.
func (s *RowSet[E]) At(i int) ([]E, error) {
	if s.whole != nil {
		return s.whole[i*s.width:][:s.width:s.width], nil
	}
	t := tensor.New(s.array.dtype, s.width)
	p, _ := t.View(0, t.Bytes())
	if err := s.array.read(p, int64(i)*t.Bytes()); err != nil {
		return nil, err
	}
	row, _ := tensor.Data[E](t)
	return row, nil
}
