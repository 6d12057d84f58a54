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
// float32, having more than twice its bits) and integers in 64 bits.
func Reduce(dst, src []byte, t tensor.DType, op tensor.Op) {
	for i := 0; i < len(dst); i += t.Size() {
		d, s := dst[i:i+t.Size()], src[i:i+t.Size()]
		switch {
		case isFloat(t):
			putFloat(d, t, foldFloats(op, float(d, t), float(s, t)))
		case t == tensor.Bool:
			putBool(d, foldBools(op, d[0] != 0, s[0] != 0))
		default:
			putInteger(d, foldIntegers(op, integer(d, t), integer(s, t), t == tensor.Uint64))
		}
	}
}

// Scale is the reference for the step before a PremulSum.
func Scale(p []byte, t tensor.DType, factor float64) {
	for i := 0; i < len(p); i += t.Size() {
		q := p[i : i+t.Size()]
		switch {
		case t == tensor.Float64:
			putFloat(q, t, float(q, t)*factor)
		case isFloat(t):
			putFloat(q, t, float(q, t)*float64(float32(factor)))
		default:
			putInteger(q, integer(q, t)*int64(factor))
		}
	}
}

// Divide is the reference for the step after an Avg over n ranks.
func Divide(p []byte, t tensor.DType, n int) {
	for i := 0; i < len(p); i += t.Size() {
		q := p[i : i+t.Size()]
		switch {
		case isFloat(t):
			putFloat(q, t, float(q, t)/float64(n))
		case t == tensor.Uint64:
			putInteger(q, int64(uint64(integer(q, t))/uint64(n)))
		default:
			putInteger(q, integer(q, t)/int64(n))
		}
	}
}

// Equal reports whether two runs of elements have the same bits, where any NaN
// is as good as another.
func Equal(a, b []byte, t tensor.DType) bool {
	if len(a) != len(b) || bytes.Equal(a, b) {
		return len(a) == len(b)
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

func integer(p []byte, t tensor.DType) int64 {
	var bits uint64
	for i, b := range p {
		bits |= uint64(b) << (8 * i)
	}
	switch unused := 64 - 8*len(p); t {
	case tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64:
		return int64(bits<<unused) >> unused // extends the sign
	case tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64:
		return int64(bits)
	}
	panic(fmt.Sprintf("tensortest: no reference for %v", t))
}

// putInteger keeps the low bits, which is what wrapping means.
func putInteger(p []byte, x int64) {
	for i := range p {
		p[i] = byte(x >> (8 * i))
	}
}

func putBool(p []byte, x bool) {
	p[0] = 0
	if x {
		p[0] = 1
	}
}

// A format is a binary interchange format of IEEE 754, or the upper half of one.
type format struct{ exponent, fraction int } // bits

var (
	float16  = format{5, 10}
	bfloat16 = format{8, 7}
)

func isFloat(t tensor.DType) bool {
	switch t {
	case tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64:
		return true
	}
	return false
}

func float(p []byte, t tensor.DType) float64 {
	switch t {
	case tensor.Float64:
		return math.Float64frombits(binary.LittleEndian.Uint64(p))
	case tensor.Float32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(p)))
	case tensor.BFloat16:
		return bfloat16.decode(int(binary.LittleEndian.Uint16(p)))
	}
	return float16.decode(int(binary.LittleEndian.Uint16(p)))
}

func putFloat(p []byte, t tensor.DType, x float64) {
	switch t {
	case tensor.Float64:
		binary.LittleEndian.PutUint64(p, math.Float64bits(x))
	case tensor.Float32:
		binary.LittleEndian.PutUint32(p, math.Float32bits(float32(x)))
	case tensor.BFloat16: // computed as float32, so rounded to that before
		binary.LittleEndian.PutUint16(p, uint16(bfloat16.encode(float64(float32(x)))))
	case tensor.Float16:
		binary.LittleEndian.PutUint16(p, uint16(float16.encode(float64(float32(x)))))
	}
}

// decode follows the definition of the formats.
func (f format) decode(bits int) float64 {
	bias, top := 1<<(f.exponent-1)-1, 1<<f.exponent-1
	fraction, e := bits%(1<<f.fraction), bits>>f.fraction%(1<<f.exponent)
	x := math.Ldexp(1+math.Ldexp(float64(fraction), -f.fraction), e-bias)
	switch {
	case e == top && fraction == 0:
		x = math.Inf(1)
	case e == top:
		x = math.NaN()
	case e == 0:
		x = math.Ldexp(float64(fraction), 1-bias-f.fraction)
	}
	if bits>>(f.exponent+f.fraction) == 1 {
		x = -x
	}
	return x
}

// encode counts in units of x's last place and rounds the count.
func (f format) encode(x float64) int {
	bias, top := 1<<(f.exponent-1)-1, 1<<f.exponent-1
	sign := 0
	if math.Signbit(x) {
		sign = 1 << (f.exponent + f.fraction)
	}
	if math.IsNaN(x) {
		return sign | top<<f.fraction | 1<<(f.fraction-1)
	}
	_, e := math.Frexp(x) // x is in [½, 1) · 2ᵉ
	e = max(e-1, 1-bias)  // what is less than normal has the least normal's unit
	count := math.RoundToEven(math.Ldexp(math.Abs(x), f.fraction-e))
	if count == math.Ldexp(1, f.fraction+1) { // rounded up to the next power of two
		count, e = count/2, e+1
	}
	switch {
	case e > bias || math.IsInf(x, 0):
		return sign | top<<f.fraction
	case count < math.Ldexp(1, f.fraction):
		return sign | int(count)
	}
	return sign | ((e+bias-1)<<f.fraction + int(count)) // whose first bit adds one to the exponent
}
