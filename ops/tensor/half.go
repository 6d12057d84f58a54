package tensor

import (
	"math"
	"strconv"
	"sync"
)

// An F16 is an element of type Float16, IEEE 754 binary16: a sign, 5 bits of
// exponent and 10 of fraction, hence 11 bits of precision up to 65504.
//
// It is storage. Arithmetic is that of float32, whose 24 bits are enough that a
// sum, product or quotient of two F16 comes out as if it had been rounded once.
type F16 uint16

// A BF16 is an element of type BFloat16, the upper half of a float32: its range,
// and 8 bits of precision.
type BF16 uint16

// ToF16 rounds to the nearest F16, to the one with the even last bit if two are
// as near. From 65520 on that is an infinity, and up to 2⁻²⁵ a zero of x's sign.
// A NaN stays one, is quiet, and keeps its sign and the upper bits of its payload.
func ToF16(x float32) F16 {
	var h [1]F16
	narrowF16(h[:], []float32{x})
	return h[0]
}

// ToBF16 rounds to the nearest BF16, to the one with the even last bit if two
// are as near. What rounds beyond the largest is an infinity. A NaN stays one,
// is quiet, and keeps its sign and the upper bits of its payload.
func ToBF16(x float32) BF16 {
	b := math.Float32bits(x)
	if x != x {
		return BF16(b>>16 | 0x40)
	}
	return BF16((b + 0x7fff + b>>16&1) >> 16)
}

// Float32 is the same value.
func (h F16) Float32() float32 {
	const least = 113 << 23 // the exponent of the least normal F16, 2⁻¹⁴
	b := uint32(h&0x7fff) << 13
	sign := uint32(h&0x8000) << 16
	switch {
	case b < 1<<23: // a fraction of 2⁻¹⁴ is what lies above it in its binade
		f := math.Float32frombits(b|least) - math.Float32frombits(least)
		b = math.Float32bits(f)
	case b < 31<<23:
		b += (127 - 15) << 23
	default: // infinities and NaNs
		b += (255 - 31) << 23
	}
	return math.Float32frombits(b | sign)
}

// Float32 is the same value.
func (h BF16) Float32() float32 { return math.Float32frombits(uint32(h) << 16) }

// String is the shortest decimal number that identifies the float32 of the same
// value.
func (h F16) String() string { return formatFloat(h.Float32()) }

// String is the shortest decimal number that identifies the float32 of the same
// value.
func (h BF16) String() string { return formatFloat(h.Float32()) }

func formatFloat(x float32) string { return strconv.FormatFloat(float64(x), 'g', -1, 32) }

// valuesF16 is the value of every F16. To look it up takes a third of the time
// of Float32, and does not slow down where fractions and normals mix.
var valuesF16 = sync.OnceValue(func() *[1 << 16]float32 {
	var v [1 << 16]float32
	for h := range v {
		v[h] = F16(h).Float32()
	}
	return &v
})

func widenF16(to []float32, from []F16) {
	values := valuesF16()
	to = to[:len(from)]
	for i, h := range from {
		to[i] = values[h]
	}
}

// narrowF16 is ToF16 in a loop, where a call an element would take as long again.
func narrowF16(to []F16, from []float32) {
	const (
		least = 113 << 23 // the exponent of the least normal F16, 2⁻¹⁴
		most  = 143 << 23 // of the first power of two beyond the greatest, 2¹⁶
		nan   = 255 << 23 // bits above these are a NaN's
	)
	to = to[:len(from)]
	for i, x := range from {
		b := math.Float32bits(x)
		sign := uint16(b >> 16 & 0x8000)
		switch b &= 0x7fffffff; {
		case b < least:
			// The last bit of a sum that begins at ½ is 2⁻²⁴, the least F16, so
			// the addition itself rounds, and leaves the result in the last bits.
			b = math.Float32bits(math.Float32frombits(b)+.5) - math.Float32bits(.5)
		case b < most:
			b += b>>13&1 + 0xfff // rounds by carrying, into the exponent if need be
			b = (b - (127-15)<<23) >> 13
		case b > nan:
			b = 0x7e00 | b>>13&0x3ff
		default:
			b = 0x7c00
		}
		to[i] = F16(sign | uint16(b))
	}
}

func widenBF16(to []float32, from []BF16) {
	to = to[:len(from)]
	for i, h := range from {
		to[i] = h.Float32()
	}
}

func narrowBF16(to []BF16, from []float32) {
	to = to[:len(from)]
	for i, x := range from {
		to[i] = ToBF16(x)
	}
}
