// Package tensorfile is what readers of files of tensors have in common: nothing that a
// file says of its size is believed before it is compared with the file's.
package tensorfile

import (
	"fmt"
	"io"
	"math"

	"peermesh/ops/tensor"
)

// Size is the number of bytes that a shape and a valid element type ask for; false if no
// tensor can be so large, or a dimension is negative.
func Size(t tensor.DType, shape []int) (int64, bool) {
	limit := math.MaxInt / t.Size()
	n := 1
	for _, d := range shape {
		if d < 0 || d > 0 && n > limit/d {
			return 0, false
		}
		n *= d
	}
	return int64(n) * int64(t.Size()), true
}

// ReadFull fills p from off. To come short is io.ErrUnexpectedEOF, since sizes are known
// before, and an error says at which byte it was.
func ReadFull(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("byte %d: %w", off+int64(n), err)
}
