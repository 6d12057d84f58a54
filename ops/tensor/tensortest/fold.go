package tensortest

import (
	"fmt"
	"math"

	"peermesh/ops/tensor"
)

// foldFloats orders -0 before +0, as math.Min does; but math.Min prefers an
// infinity to a NaN.
func foldFloats(op tensor.Op, a, b float64) float64 {
	nan := math.IsNaN(a) || math.IsNaN(b)
	switch {
	case sums(op):
		return a + b
	case op == tensor.Product:
		return a * b
	case op == tensor.Min && !nan:
		return math.Min(a, b)
	case op == tensor.Max && !nan:
		return math.Max(a, b)
	case op == tensor.Min || op == tensor.Max:
		return math.NaN()
	}
	panic(fmt.Sprintf("tensortest: no reference for %v of floats", op))
}

// foldIntegers computes in 64 bits, whose low ones are right for less. Only
// order depends on the sign: unsigned says that these are of 64 bits and have
// none, where fewer come as they are.
func foldIntegers(op tensor.Op, a, b int64, unsigned bool) int64 {
	less := a < b
	if unsigned {
		less = uint64(a) < uint64(b)
	}
	switch {
	case sums(op):
		return a + b
	case op == tensor.Product:
		return a * b
	case op == tensor.Min && less, op == tensor.Max && !less:
		return a
	case op == tensor.Min || op == tensor.Max:
		return b
	case op == tensor.BitAnd:
		return a & b
	case op == tensor.BitOr:
		return a | b
	case op == tensor.BitXor:
		return a ^ b
	}
	panic(fmt.Sprintf("tensortest: no reference for %v of integers", op))
}

func foldBools(op tensor.Op, a, b bool) bool {
	switch op {
	case tensor.Sum, tensor.Max, tensor.BitOr:
		return a || b
	case tensor.Product, tensor.Min, tensor.BitAnd:
		return a && b
	case tensor.BitXor:
		return a != b
	}
	panic(fmt.Sprintf("tensortest: no reference for %v of bools", op))
}

// sums reports whether op folds as Sum does.
func sums(op tensor.Op) bool {
	return op == tensor.Sum || op == tensor.Avg || op.Code() == tensor.PremulSum(1).Code()
}
