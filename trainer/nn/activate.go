package nn

import (
	"math"

	"peermesh/trainer/nn/internal/draw"
)

// relu clips negative numbers to zero. A NaN stays one, so that a training run
// that diverges says so in its loss.
func relu(y []float32) {
	for i, v := range y {
		y[i] = max(v, 0)
	}
}

// dropout zeroes each run of size floats with probability p and divides the
// others by 1-p, as training needs them: one float a run for elements, a plane
// for channels. A run takes 32 bits of s.
func dropout(y []float32, size int, p float64, s draw.Stream) {
	threshold := int64(p * (1 << 32))
	scale := float32(1 / (1 - p))
	var bits uint64
	for i := range len(y) / size {
		// Masks, not branches: nothing predicts a random bit.
		if bits >>= 32; i%2 == 0 {
			bits = s.Next()
		}
		drop := uint32((int64(uint32(bits)) - threshold) >> 63) // all ones, or zero
		for j, run := 0, y[i*size:]; j < size; j++ {
			run[j] = math.Float32frombits(math.Float32bits(run[j]*scale) &^ drop)
		}
	}
}

// gate is relu and dropout backward. Both leave a zero where they let nothing
// through, so the output y is all the mask that the gradient dy needs.
func gate(dy, y []float32, scale float32) {
	y = y[:len(dy)]
	for i, v := range dy {
		closed := uint32((int64(math.Float32bits(y[i])) - 1) >> 63) // all ones, or zero
		dy[i] = math.Float32frombits(math.Float32bits(v*scale) &^ closed)
	}
}
