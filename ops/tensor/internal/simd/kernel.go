package simd

// A Kernel folds elements of one type by one operation. The zero Kernel is none.
type Kernel uint8

const (
	_ Kernel = iota

	sumFloat32
	productFloat32
	minFloat32
	maxFloat32
	quotientFloat32
	residualFloat32

	sumFloat64
	productFloat64
	minFloat64
	maxFloat64
	quotientFloat64
	residualFloat64

	sumFloat16
	productFloat16
	minFloat16
	maxFloat16
	quotientFloat16

	sumBFloat16
	productBFloat16
	minBFloat16
	maxBFloat16
	quotientBFloat16

	sum8
	product8
	minInt8
	maxInt8
	minUint8
	maxUint8

	sum16
	product16
	minInt16
	maxInt16
	minUint16
	maxUint16

	sum32
	product32
	minInt32
	maxInt32
	minUint32
	maxUint32

	sum64
	product64
	minInt64
	maxInt64
	minUint64
	maxUint64

	bitAnd
	bitOr
	bitXor
	boolAnd
	boolOr
	boolXor

	count
)

// Kernels are those of one element type, whose zeros say what it does not have.
// Sums of integers wrap and so have no sign; bits have no size either. A Residual is src's
// element less dst's, or 0 where that is not finite.
type Kernels struct {
	Sum, Product, Min, Max, Quotient, Residual, And, Or, Xor Kernel
}

// The element types. Float16 and BFloat16 are computed as float32, each result
// rounded to nearest, ties to even. A byte of a Bool is true if it is not 0.
var (
	Float32  = Kernels{Sum: sumFloat32, Product: productFloat32, Min: minFloat32, Max: maxFloat32, Quotient: quotientFloat32, Residual: residualFloat32}
	Float64  = Kernels{Sum: sumFloat64, Product: productFloat64, Min: minFloat64, Max: maxFloat64, Quotient: quotientFloat64, Residual: residualFloat64}
	Float16  = Kernels{Sum: sumFloat16, Product: productFloat16, Min: minFloat16, Max: maxFloat16, Quotient: quotientFloat16}
	BFloat16 = Kernels{Sum: sumBFloat16, Product: productBFloat16, Min: minBFloat16, Max: maxBFloat16, Quotient: quotientBFloat16}
	Int8     = Kernels{Sum: sum8, Product: product8, Min: minInt8, Max: maxInt8, And: bitAnd, Or: bitOr, Xor: bitXor}
	Int16    = Kernels{Sum: sum16, Product: product16, Min: minInt16, Max: maxInt16, And: bitAnd, Or: bitOr, Xor: bitXor}
	Int32    = Kernels{Sum: sum32, Product: product32, Min: minInt32, Max: maxInt32, And: bitAnd, Or: bitOr, Xor: bitXor}
	Int64    = Kernels{Sum: sum64, Product: product64, Min: minInt64, Max: maxInt64, And: bitAnd, Or: bitOr, Xor: bitXor}
	Uint8    = Kernels{Sum: sum8, Product: product8, Min: minUint8, Max: maxUint8, And: bitAnd, Or: bitOr, Xor: bitXor}
	Uint16   = Kernels{Sum: sum16, Product: product16, Min: minUint16, Max: maxUint16, And: bitAnd, Or: bitOr, Xor: bitXor}
	Uint32   = Kernels{Sum: sum32, Product: product32, Min: minUint32, Max: maxUint32, And: bitAnd, Or: bitOr, Xor: bitXor}
	Uint64   = Kernels{Sum: sum64, Product: product64, Min: minUint64, Max: maxUint64, And: bitAnd, Or: bitOr, Xor: bitXor}
	Bool     = Kernels{And: boolAnd, Or: boolOr, Xor: boolXor}
)

// Usable reports whether k is a kernel that this processor and build can run.
func (k Kernel) Usable() bool { return k > 0 && k < count && available }
