package compress

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
)

// OneBit is a codec of one bit an element, its sign, and a float32 a block, the mean of
// the magnitudes: 4 + ⌈N/8⌉ bytes for N elements (zero: 512). It says so little that it
// needs feedback, which a [Coded] gives: what is not said in one step is said in later
// ones (Seide et al., "1-Bit Stochastic Gradient Descent", Interspeech 2014; Karimireddy
// et al., "Error Feedback Fixes SignSGD", ICML 2019). A block with a NaN or an infinity
// decodes to NaNs.
type OneBit int

// Name is the codec and its block, as in "onebit/512".
func (c OneBit) Name() string { return fmt.Sprintf("onebit/%d", c.per()) }

// Block is the elements and bytes of a block.
func (c OneBit) Block() (elements, bytes int) { return c.per(), header + (c.per()+7)/8 }

func (c OneBit) per() int { return cmp.Or(int(c), DefaultOneBitBlock) }

// Encode32 writes the blocks of src to dst.
func (c OneBit) Encode32(dst []byte, src []float32) { eachBlock(c, dst, src, encodeOneBit[float32]) }

// Encode64 writes the blocks of src to dst.
func (c OneBit) Encode64(dst []byte, src []float64) { eachBlock(c, dst, src, encodeOneBit[float64]) }

// Decode32 reads the blocks of dst from src.
func (c OneBit) Decode32(dst []float32, src []byte) { eachBlock(c, src, dst, decodeOneBit[float32]) }

// Decode64 reads the blocks of dst from src.
func (c OneBit) Decode64(dst []float64, src []byte) { eachBlock(c, src, dst, decodeOneBit[float64]) }

// encodeOneBit has element i's sign in bit i%8 of byte i/8: 1 for what is negative.
func encodeOneBit[T real](p []byte, x []T) {
	mean := float32(magnitudes(x) / float64(len(x)))
	if mean-mean != 0 {
		mean = float32(math.NaN())
	}
	binary.LittleEndian.PutUint32(p, math.Float32bits(mean))
	q := p[header:]
	for ; len(x) >= 8; x, q = x[8:], q[1:] {
		q[0] = sign(x[0]) | sign(x[1])<<1 | sign(x[2])<<2 | sign(x[3])<<3 |
			sign(x[4])<<4 | sign(x[5])<<5 | sign(x[6])<<6 | sign(x[7])<<7
	}
	clear(q)
	for i, v := range x {
		q[0] |= sign(v) << i
	}
}

func sign[T real](v T) byte { return byte(math.Float32bits(float32(v)) >> 31) }

// magnitudes is their sum, of four sums, for none of them to wait for the one before.
func magnitudes[T real](x []T) float64 {
	var a, b, c, d float64
	for ; len(x) >= 4; x = x[4:] {
		a, b = a+absolute(x[0]), b+absolute(x[1])
		c, d = c+absolute(x[2]), d+absolute(x[3])
	}
	for _, v := range x {
		a += absolute(v)
	}
	return a + b + (c + d)
}

func absolute[T real](v T) float64 { return float64(math.Float32frombits(bitsOf(v))) }

func decodeOneBit[T real](p []byte, x []T) {
	u, q := math.Float32bits(unitOf(p)), p[header:]
	for ; len(x) >= 8; x, q = x[8:], q[1:] {
		b := uint32(q[0])
		x[0], x[1], x[2], x[3] = signed[T](u, b<<31), signed[T](u, b<<30), signed[T](u, b<<29), signed[T](u, b<<28)
		x[4], x[5], x[6], x[7] = signed[T](u, b<<27), signed[T](u, b<<26), signed[T](u, b<<25), signed[T](u, b<<24)
	}
	for i := range x {
		x[i] = signed[T](u, uint32(q[0])<<(31-i))
	}
}

// signed is the number of those bits, with its sign turned if the first of the others is 1.
func signed[T real](u, turn uint32) T { return T(math.Float32frombits(u ^ turn&(1<<31))) }
