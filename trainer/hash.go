package trainer

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"

	"peermesh/ops/tensor"
)

// Hash is a SHA-256 of the parameters' names, types, shapes and values, which
// ranks compare to prove that their replicas agree bit for bit. Gradients do not
// enter it. It errs only where a value cannot be read.
//
// The bytes hashed are the number of parameters and, for each in order: its
// name's length and name; its element type's name, likewise; its number of
// dimensions and each of them; its values' length in bytes and the values, all
// little-endian, the numbers 8 bytes wide. The lengths make it impossible for
// two different lists to be the same bytes.
func Hash(params []*Param) ([32]byte, error) {
	h := sha256.New()
	hashInts(h, len(params))
	for _, p := range params {
		hashText(h, p.Name)
		hashText(h, p.Value.DType().String())
		shape := p.Value.Shape()
		hashInts(h, len(shape))
		hashInts(h, shape...)
		hashInts(h, int(p.Value.Bytes()))
		if err := hashValue(h, p.Value); err != nil {
			return [32]byte{}, fmt.Errorf("trainer: hash of parameter %q: %w", p.Name, err)
		}
	}
	return [32]byte(h.Sum(nil)), nil
}

// A hash.Hash never returns an error from Write; it says so.

func hashInts(h hash.Hash, xs ...int) {
	for _, x := range xs {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(x)))
	}
}

func hashText(h hash.Hash, s string) {
	hashInts(h, len(s))
	_, _ = io.WriteString(h, s) // a hash takes everything
}

// hashValue reads what the host cannot address in pieces of io.Copy's size.
func hashValue(h hash.Hash, x tensor.Tensor) error {
	if p, ok := x.View(0, x.Bytes()); ok {
		h.Write(p)
		return nil
	}
	_, err := io.Copy(h, io.NewSectionReader(x, 0, x.Bytes()))
	return err
}
