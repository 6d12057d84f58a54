package compress

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"

	"peermesh/trainer/compress/internal/blocks"
)

// The sizes of blocks where a codec's number is zero.
const (
	DefaultInt8Block   = 256
	DefaultInt4Block   = 64
	DefaultOneBitBlock = 512
)

const (
	// header is the length of a block's unit on the wire: a float32, little-endian.
	header = 4
	// round is added to a number below 2²² in magnitude, and then has its nearest integer
	// (the even one of two) in its last bits.
	round = 3 << 22
	// least is the greatest magnitude of a block that is worth a unit: below it the
	// reciprocal of a unit would overflow, and the block counts as zeros.
	least = 0x1p-118

	magnitude = 1<<31 - 1 // of a float32's bits: larger ones are of larger numbers, NaNs of the largest
	infinite  = 255 << 23
)

type real interface{ float32 | float64 }

// Int8 is a codec of eight bits an element and a float32 a block: 4 + N bytes for N
// elements, the number that it is (zero: 256). An element is a multiple, of −127 to 127,
// of the block's unit, which is the greatest magnitude over 127, so it is off by half a
// unit at most: 1/254 of the greatest of its block. A block with a NaN or an infinity
// decodes to NaNs, which all ranks then see; one with no magnitude of 2⁻¹¹⁸, to zeros.
type Int8 int

// Name is the codec and its block, as in "int8/256".
func (c Int8) Name() string { return fmt.Sprintf("int8/%d", c.per()) }

// Block is the elements and bytes of a block.
func (c Int8) Block() (elements, bytes int) { return c.per(), header + c.per() }

func (c Int8) per() int { return cmp.Or(int(c), DefaultInt8Block) }

// Encode32 writes the blocks of src to dst.
func (c Int8) Encode32(dst []byte, src []float32) { eachBlock(c, dst, src, encodeInt8[float32]) }

// Encode64 writes the blocks of src to dst.
func (c Int8) Encode64(dst []byte, src []float64) { eachBlock(c, dst, src, encodeInt8[float64]) }

// Decode32 reads the blocks of dst from src.
func (c Int8) Decode32(dst []float32, src []byte) { eachBlock(c, src, dst, decodeInt8[float32]) }

// Decode64 reads the blocks of dst from src.
func (c Int8) Decode64(dst []float64, src []byte) { eachBlock(c, src, dst, decodeInt8[float64]) }

// Int4 is Int8 with four bits an element: multiples of −7 to 7 of the greatest magnitude
// over 7, off by 1/14 of the greatest at most. Two elements are a byte, the first in its
// lower half: 4 + ⌈N/2⌉ bytes for N elements (zero: 64).
type Int4 int

// Name is the codec and its block, as in "int4/64".
func (c Int4) Name() string { return fmt.Sprintf("int4/%d", c.per()) }

// Block is the elements and bytes of a block.
func (c Int4) Block() (elements, bytes int) { return c.per(), header + (c.per()+1)/2 }

func (c Int4) per() int { return cmp.Or(int(c), DefaultInt4Block) }

// Encode32 writes the blocks of src to dst.
func (c Int4) Encode32(dst []byte, src []float32) { eachBlock(c, dst, src, encodeInt4[float32]) }

// Encode64 writes the blocks of src to dst.
func (c Int4) Encode64(dst []byte, src []float64) { eachBlock(c, dst, src, encodeInt4[float64]) }

// Decode32 reads the blocks of dst from src.
func (c Int4) Decode32(dst []float32, src []byte) { eachBlock(c, src, dst, decodeInt4[float32]) }

// Decode64 reads the blocks of dst from src.
func (c Int4) Decode64(dst []float64, src []byte) { eachBlock(c, src, dst, decodeInt4[float64]) }

// eachBlock gives f the bytes and the elements of each block.
func eachBlock[T real](c interface{ Block() (int, int) }, p []byte, x []T, f func(p []byte, x []T)) {
	per, size := c.Block()
	for len(x) > per {
		f(p[:size], x[:per])
		p, x = p[size:], x[per:]
	}
	if len(x) > 0 {
		f(p[:size], x)
	}
}

// unit writes a block's unit, of which its greatest magnitude has so many, and returns
// its reciprocal, 0 for a block that is all zeros, or not all numbers.
func unit[T real](p []byte, x []T, many float32) (inverse float32) {
	most := greatest(x)
	u := float32(0)
	switch top := math.Float32frombits(most); {
	case most >= infinite:
		u = float32(math.NaN())
	case top >= least:
		u, inverse = top/many, many/top
	}
	binary.LittleEndian.PutUint32(p, math.Float32bits(u))
	return inverse
}

// Of each of the following functions a kernel of package blocks takes as many elements of
// float32 as it will, and a loop the rest, to the same bits.

// single is x if it is of float32, or else nothing.
func single[T real](x []T) []float32 {
	s, _ := any(x).([]float32)
	return s
}

// greatest is the greatest of the magnitudes' bits; four at a time, for none of them to
// wait for the one before.
func greatest[T real](x []T) uint32 {
	a, done := blocks.Greatest(single(x))
	var b, c, d uint32
	for x = x[done:]; len(x) >= 4; x = x[4:] {
		a, b = max(a, bitsOf(x[0])), max(b, bitsOf(x[1]))
		c, d = max(c, bitsOf(x[2])), max(d, bitsOf(x[3]))
	}
	for _, v := range x {
		a = max(a, bitsOf(v))
	}
	return max(a, b, c, d)
}

func bitsOf[T real](v T) uint32 { return math.Float32bits(float32(v)) & magnitude }

func unitOf(p []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(p)) }

// nearest is the integer nearest to v/unit. A block without a unit has NaNs at most, whose
// bits are as good as any.
func nearest[T real](v T, inverse float32) uint32 {
	return math.Float32bits(float32(float32(v)*inverse) + round)
}

func encodeInt8[T real](p []byte, x []T) {
	inverse := unit(p, x, 127)
	q := p[header:]
	clear(q[len(x):])
	done := blocks.EncodeInt8(q, single(x), inverse)
	x = x[done:]
	q = q[done:][:len(x)]
	for i, v := range x {
		q[i] = byte(nearest(v, inverse))
	}
}

func decodeInt8[T real](p []byte, x []T) {
	u, q := T(unitOf(p)), p[header:]
	done := blocks.DecodeInt8(single(x), q, unitOf(p))
	x = x[done:]
	q = q[done:][:len(x)]
	for i, b := range q {
		x[i] = T(int8(b)) * u
	}
}

func encodeInt4[T real](p []byte, x []T) {
	inverse := unit(p, x, 7)
	q := p[header:]
	clear(q[len(x)/2:])
	done := blocks.EncodeInt4(q, single(x), inverse)
	x, q = x[done:], q[done/2:]
	for i := range len(x) / 2 {
		q[i] = byte(nearest(x[2*i], inverse)&15 | nearest(x[2*i+1], inverse)<<4)
	}
	if i := len(x) - 1; i%2 == 0 {
		q[i/2] = byte(nearest(x[i], inverse) & 15)
	}
}

func decodeInt4[T real](p []byte, x []T) {
	u, q := T(unitOf(p)), p[header:]
	done := blocks.DecodeInt4(single(x), q, unitOf(p))
	x = x[done:]
	q = q[done/2:][:(len(x)+1)/2]
	for i := range len(x) / 2 {
		x[2*i], x[2*i+1] = T(int8(q[i]<<4)>>4)*u, T(int8(q[i])>>4)*u
	}
	if i := len(x) - 1; i%2 == 0 {
		x[i] = T(int8(q[i/2]<<4)>>4) * u
	}
}
