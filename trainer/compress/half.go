package compress

import (
	"encoding/binary"

	"peermesh/ops/tensor"
)

// halfBlock is the block of the codecs that need none: small, as a short one is padded.
const halfBlock = 64

// Float16 is a codec of two bytes an element, IEEE 754's binary16. Unlike the hook of
// that name in package trainer it adds up what it carries in the bucket's own type, a
// [Coded] gives it feedback, and it can carry the factors of a [PowerSGD]. Beyond
// 65504 numbers become infinite, below 2⁻²⁴ they become zero.
type Float16 struct{}

// BFloat16 is a codec of two bytes an element, with float32's range and 8 bits of
// precision. As to the hook in package trainer, see Float16.
type BFloat16 struct{}

// Name is "float16".
func (Float16) Name() string { return "float16" }

// Name is "bfloat16".
func (BFloat16) Name() string { return "bfloat16" }

// Block is the elements and bytes of a block.
func (Float16) Block() (elements, bytes int) { return halfBlock, 2 * halfBlock }

// Block is the elements and bytes of a block.
func (BFloat16) Block() (elements, bytes int) { return halfBlock, 2 * halfBlock }

// Encode32 writes the blocks of src to dst.
func (Float16) Encode32(dst []byte, src []float32) { toFloat16(dst, src) }

// Encode64 writes the blocks of src to dst.
func (Float16) Encode64(dst []byte, src []float64) { toFloat16(dst, src) }

// Decode32 reads the blocks of dst from src.
func (Float16) Decode32(dst []float32, src []byte) { fromFloat16(dst, src) }

// Decode64 reads the blocks of dst from src.
func (Float16) Decode64(dst []float64, src []byte) { fromFloat16(dst, src) }

// Encode32 writes the blocks of src to dst.
func (BFloat16) Encode32(dst []byte, src []float32) { toBFloat16(dst, src) }

// Encode64 writes the blocks of src to dst.
func (BFloat16) Encode64(dst []byte, src []float64) { toBFloat16(dst, src) }

// Decode32 reads the blocks of dst from src.
func (BFloat16) Decode32(dst []float32, src []byte) { fromBFloat16(dst, src) }

// Decode64 reads the blocks of dst from src.
func (BFloat16) Decode64(dst []float64, src []byte) { fromBFloat16(dst, src) }

// Each of the following is a loop of its own, for the conversion to be a part of it.

func toFloat16[T real](dst []byte, src []T) {
	for _, v := range src {
		binary.LittleEndian.PutUint16(dst, uint16(tensor.ToF16(float32(v))))
		dst = dst[2:]
	}
	clear(dst[:padding(len(src))])
}

func fromFloat16[T real](dst []T, src []byte) {
	src = src[:2*len(dst)]
	for i := range dst {
		dst[i] = T(tensor.F16(binary.LittleEndian.Uint16(src[2*i:])).Float32())
	}
}

func toBFloat16[T real](dst []byte, src []T) {
	for _, v := range src {
		binary.LittleEndian.PutUint16(dst, uint16(tensor.ToBF16(float32(v))))
		dst = dst[2:]
	}
	clear(dst[:padding(len(src))])
}

func fromBFloat16[T real](dst []T, src []byte) {
	src = src[:2*len(dst)]
	for i := range dst {
		dst[i] = T(tensor.BF16(binary.LittleEndian.Uint16(src[2*i:])).Float32())
	}
}

// padding is the bytes that the last of the blocks of n elements lacks.
func padding(n int) int { return 2 * ((halfBlock - n%halfBlock) % halfBlock) }
