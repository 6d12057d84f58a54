package tensortest

import (
	"math"
	"math/rand/v2"

	"peermesh/ops/tensor"
)

// DTypes are all element types there are.
func DTypes() []tensor.DType {
	var all []tensor.DType
	for i := range math.MaxUint8 + 1 {
		if t := tensor.DType(i); t.Valid() {
			all = append(all, t)
		}
	}
	return all
}

// factor is PremulSum's: a value of all types of numbers, and no power of two.
const factor = 3

// Ops are all reductions of a type, but for Funcs, which any may have.
func Ops(t tensor.DType) []tensor.Op {
	var all []tensor.Op
	for _, op := range []tensor.Op{
		tensor.Sum, tensor.Product, tensor.Min, tensor.Max, tensor.Avg,
		tensor.BitAnd, tensor.BitOr, tensor.BitXor, tensor.PremulSum(factor),
	} {
		if op.Check(t) == nil {
			all = append(all, op)
		}
	}
	return all
}

// specials are what arithmetic gets wrong: the values that are not equal to
// themselves, equal without having the same bits, about to overflow, or less
// than a type's least normal value.
var specials = []float64{
	math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1, -1,
	65504, -65504, 65519.99, 0x1p-14, 0x1p-24, -0x1.8p-25,
	math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, math.MaxFloat64,
}

// Fill fills p with elements of a type: of floats a third special, the others
// of all magnitudes up to 10; of integers all values; of bools all bytes, for
// a message may hold any.
func Fill(p []byte, t tensor.DType, r *rand.Rand) {
	for i := 0; i+t.Size() <= len(p); i += t.Size() {
		q := p[i : i+t.Size()]
		switch {
		case t == tensor.Bool && r.IntN(2) == 0:
			q[0] = byte(r.IntN(2))
		case !isFloat(t):
			putInteger(q, int64(r.Uint64()))
		case r.IntN(3) == 0:
			putFloat(q, t, specials[r.IntN(len(specials))])
		default:
			putFloat(q, t, r.NormFloat64()*math.Pow(10, float64(r.IntN(9)-8)))
		}
	}
}
