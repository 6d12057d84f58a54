package tensor

import (
	"fmt"
	"unsafe"
)

// An Element is a Go type that a tensor can hold. There is no ~: a dtype names
// one Go type, so that Data gives back exactly what Of was given.
type Element interface {
	float32 | float64 | int32 | int64 | uint8
}

// A DType names an element type at run time. Its values travel in messages, so
// they are never renumbered. The zero DType names nothing.
type DType uint8

// The element types.
const (
	Float32 DType = 1
	Float64 DType = 2
	Int32   DType = 3
	Int64   DType = 4
	Uint8   DType = 5
)

// dtypes holds all that the package knows of each element type: a new one is a
// constant, a term of Element and a row.
var dtypes = [...]dtypeRow{
	Float32: rowOf[float32]("float32"),
	Float64: rowOf[float64]("float64"),
	Int32:   rowOf[int32]("int32"),
	Int64:   rowOf[int64]("int64"),
	Uint8:   rowOf[uint8]("uint8"),
}

type dtypeRow struct {
	name    string
	size    int
	zero    any // a zero of the Go type, by which dtypeOf finds the row
	kernels column
}

func rowOf[T Element](name string) dtypeRow {
	var zero T
	return dtypeRow{name, int(unsafe.Sizeof(zero)), zero, columnOf[T]()}
}

// dtypeOf finds the dtype of a Go type. Two interfaces that hold zeros are
// equal exactly when their types are.
func dtypeOf[T Element]() DType {
	var zero T
	for t := range dtypes {
		if dtypes[t].zero == any(zero) {
			return DType(t)
		}
	}
	panic(fmt.Sprintf("tensor: no row for %T", zero))
}

// Valid reports whether t is one of the types above, which a byte from the
// network need not be.
func (t DType) Valid() bool {
	return int(t) < len(dtypes) && dtypes[t].size > 0
}

// Size is the size of an element in bytes, 0 if t is not valid.
func (t DType) Size() int {
	if !t.Valid() {
		return 0
	}
	return dtypes[t].size
}

// String is the name of the Go type, as in "float32".
func (t DType) String() string {
	if !t.Valid() {
		return fmt.Sprintf("dtype(%d)", uint8(t))
	}
	return dtypes[t].name
}
