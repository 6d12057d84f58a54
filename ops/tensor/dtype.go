package tensor

import (
	"fmt"
	"unsafe"

	"peermesh/ops/tensor/internal/simd"
)

// An Element is a Go type that a tensor can hold. There is no ~: a dtype names
// one Go type, so that Data gives back exactly what Of was given.
type Element interface {
	number | F16 | BF16 | bool
}

// A number is an Element with Go's own arithmetic.
type number interface {
	float32 | float64 | integer
}

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// A DType names an element type at run time. Its values travel in messages, so
// they are never renumbered. The zero DType names nothing.
type DType uint8

// The element types. Those of Go have its name for them; Float16 is [F16] and
// BFloat16 is [BF16].
const (
	Float32  DType = 1
	Float64  DType = 2
	Int32    DType = 3
	Int64    DType = 4
	Uint8    DType = 5
	Float16  DType = 6 // IEEE 754 binary16
	BFloat16 DType = 7 // the upper half of a float32
	Int8     DType = 8
	Int16    DType = 9
	Uint16   DType = 10
	Uint32   DType = 11
	Uint64   DType = 12
	Bool     DType = 13 // a byte, 0 or 1
)

// dtypes holds all that the package knows of each element type: a new one is a
// constant, a term of Element and a row, which says how to compute with it.
var dtypes = [...]dtypeRow{
	Float32:  rowOf[float32]("float32", floats[float32, float32](simd.Float32)),
	Float64:  rowOf[float64]("float64", floats[float64, float64](simd.Float64)),
	Int32:    rowOf[int32]("int32", integers[int32, int64](simd.Int32)),
	Int64:    rowOf[int64]("int64", integers[int64, int64](simd.Int64)),
	Uint8:    rowOf[uint8]("uint8", integers[uint8, uint64](simd.Uint8)),
	Float16:  rowOf[F16]("float16", floats[F16, float32](simd.Float16)),
	BFloat16: rowOf[BF16]("bfloat16", floats[BF16, float32](simd.BFloat16)),
	Int8:     rowOf[int8]("int8", integers[int8, int64](simd.Int8)),
	Int16:    rowOf[int16]("int16", integers[int16, int64](simd.Int16)),
	Uint16:   rowOf[uint16]("uint16", integers[uint16, uint64](simd.Uint16)),
	Uint32:   rowOf[uint32]("uint32", integers[uint32, uint64](simd.Uint32)),
	Uint64:   rowOf[uint64]("uint64", integers[uint64, uint64](simd.Uint64)),
	Bool:     rowOf[bool]("bool", bools(simd.Bool)),
}

type dtypeRow struct {
	name string
	size int
	zero any // a zero of the Go type, by which dtypeOf finds the row
	column
}

func rowOf[T Element](name string, c column) dtypeRow {
	var zero T
	return dtypeRow{name, int(unsafe.Sizeof(zero)), zero, c}
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

// String is the usual name of the type, as in "float32" or "bfloat16".
func (t DType) String() string {
	if !t.Valid() {
		return fmt.Sprintf("dtype(%d)", uint8(t))
	}
	return dtypes[t].name
}
