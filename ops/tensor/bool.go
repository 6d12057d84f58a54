package tensor

import "encoding/binary"

// A Go bool that is neither 0 nor 1 is undefined: the compiler may take it for
// both. A byte of a message may be anything. So such a byte is never a bool
// here: kernels compute with normalised copies, WriteAt normalises what it
// stores, and Data refuses elements that are none.

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// areBools reports whether every byte is 0 or 1.
func areBools(p []byte) bool {
	for ; len(p) >= 8; p = p[8:] {
		if binary.LittleEndian.Uint64(p)&^lowBits != 0 {
			return false
		}
	}
	for _, b := range p {
		if b > 1 {
			return false
		}
	}
	return true
}

// normalise sets to to p, with 1 for every byte that is not 0. The two may be
// the same.
func normalise(to, p []byte) {
	to = to[:len(p)]
	for ; len(p) >= 8; to, p = to[8:], p[8:] {
		w := binary.LittleEndian.Uint64(p)
		w |= w&^highBits + ^uint64(highBits) // sets the high bit of bytes that are not 0
		binary.LittleEndian.PutUint64(to, w>>7&lowBits)
	}
	for i, b := range p {
		to[i] = (b | -b) >> 7
	}
}

// writeBools is WriteAt of bytes some of which are no bools.
func (t Tensor) writeBools(p []byte, off int64) (n int, err error) {
	block := make([]byte, min(len(p), copyBlock))
	for n < len(p) && err == nil {
		block = block[:min(len(block), len(p)-n)]
		normalise(block, p[n:n+len(block)])
		var k int
		k, err = t.memory.WriteAt(block, t.off+off+int64(n))
		n += k
	}
	return n, err
}
