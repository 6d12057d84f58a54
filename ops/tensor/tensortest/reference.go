package tensortest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"peermesh/ops/tensor"
)

// Reduce is the reference for ReduceAt, dst = op(dst, src). It is written for
// plainness and shares nothing with the kernels: elements are taken from bytes
// one at a time, floats are computed in float64 (which rounds to the same
// float32, having more than twice its bits) and integers in int64.
func Reduce(dst, src []byte, t tensor.DType, op tensor.Op) {
	for i := 0; i < len(dst); i += t.Size() {
		d, s := dst[i:i+t.Size()], src[i:i+t.Size()]
		if isFloat(t) {
			putFloat(d, t, foldFloats(op, float(d, t), float(s, t)))
		} else {
			putInteger(d, t, foldIntegers(op, integer(d, t), integer(s, t)))
		}
	}
}

// Equal reports whether two runs of elements have the same bits, where any NaN
// is as good as another.
func Equal(a, b []byte, t tensor.DType) bool {
	if len(a) != len(b) {
		return false
	}
	for i := 0; i < len(a); i += t.Size() {
		x, y := a[i:i+t.Size()], b[i:i+t.Size()]
		bothNaN := isFloat(t) && math.IsNaN(float(x, t)) && math.IsNaN(float(y, t))
		if !bothNaN && !bytes.Equal(x, y) {
			return false
		}
	}
	return true
}

func isFloat(t tensor.DType) bool { return t == tensor.Float32 || t == tensor.Float64 }

func float(p []byte, t tensor.DType) float64 {
	if t == tensor.Float32 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(p)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(p))
}

func putFloat(p []byte, t tensor.DType, x float64) {
	if t == tensor.Float32 {
		binary.LittleEndian.PutUint32(p, math.Float32bits(float32(x)))
		return
	}
	binary.LittleEndian.PutUint64(p, math.Float64bits(x))
}

func integer(p []byte, t tensor.DType) int64 {
	switch t {
	case tensor.Int32:
		return int64(int32(binary.LittleEndian.Uint32(p)))
	case tensor.Int64:
		return int64(binary.LittleEndian.Uint64(p))
	case tensor.Uint8:
		return int64(p[0])
	}
	panic(fmt.Sprintf("tensortest: no reference for %v", t))
}

// putInteger keeps the low bits, which is what wrapping means.
func putInteger(p []byte, t tensor.DType, x int64) {
	for i := range t.Size() {
		p[i] = byte(x >> (8 * i))
	}
}

// foldFloats orders -0 before +0, as math.Min does; but math.Min prefers an
// infinity to a NaN.
func foldFloats(op tensor.Op, a, b float64) float64 {
	nan := math.IsNaN(a) || math.IsNaN(b)
	switch {
	case op == tensor.Sum:
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
	panic(fmt.Sprintf("tensortest: no reference for %v", op))
}

func foldIntegers(op tensor.Op, a, b int64) int64 {
	switch {
	case op == tensor.Sum:
		return a + b
	case op == tensor.Product:
		return a * b
	case op == tensor.Min && a < b, op == tensor.Max && a > b:
		return a
	case op == tensor.Min || op == tensor.Max:
		return b
	}
	panic(fmt.Sprintf("tensortest: no reference for %v", op))
}
