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

// Ops are all reductions there are.
func Ops() []tensor.Op {
	var all []tensor.Op
	for i := range math.MaxUint8 + 1 {
		if op := tensor.Op(i); op.Valid() {
			all = append(all, op)
		}
	}
	return all
}

// specials are what arithmetic gets wrong: the values that are not equal to
// themselves, equal without having the same bits, or about to overflow.
var specials = []float64{
	math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1, -1,
	math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, math.MaxFloat64,
}

// Fill fills p with elements of a type: of floats a third special, the others
// of all magnitudes up to 10; of integers all values.
func Fill(p []byte, t tensor.DType, r *rand.Rand) {
	for i := 0; i+t.Size() <= len(p); i += t.Size() {
		q := p[i : i+t.Size()]
		switch {
		case !isFloat(t):
			putInteger(q, t, int64(r.Uint64()))
		case r.IntN(3) == 0:
			putFloat(q, t, specials[r.IntN(len(specials))])
		default:
			putFloat(q, t, r.NormFloat64()*math.Pow(10, float64(r.IntN(9)-8)))
		}
	}
}
