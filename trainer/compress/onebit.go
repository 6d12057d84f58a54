package compress

import (
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

func (c OneBit) per() int { return orDefault(int(c), DefaultOneBitBlock) }

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
	sum := 0.
	q := p[header:]
	clear(q)
	for i, v := range x {
		b := math.Float32bits(float32(v))
		sum += float64(math.Float32frombits(b & magnitude))
		q[i/8] |= byte(b>>31) << (i % 8)
	}
	mean := float32(sum / float64(len(x)))
	if mean-mean != 0 {
		mean = float32(math.NaN())
	}
	binary.LittleEndian.PutUint32(p, math.Float32bits(mean))
}

func decodeOneBit[T real](p []byte, x []T) {
	u := unitOf(p)
	values := [2]T{T(u), T(-u)}
	q := p[header:][:(len(x)+7)/8]
	for i := range x {
		x[i] = values[q[i/8]>>(i%8)&1]
	}
}
