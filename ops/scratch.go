package ops

import (
	"math/bits"
	"sync"
	"unsafe"

	"peermesh/ops/tensor"
)

// scratch lends buffers for what arrives before it may land, by powers of two.
var scratch buffers

// A pool holds pointers to its buffers' first bytes, since a slice in an interface
// would be an allocation.
type buffers struct{ pools [48]sync.Pool }

func (b *buffers) get(n int64) []byte {
	class := bits.Len64(uint64(max(n, 1) - 1))
	if p, ok := b.pools[class].Get().(*byte); ok {
		return unsafe.Slice(p, 1<<class)[:n]
	}
	return make([]byte, n, 1<<class)
}

// tensor is a tensor in a buffer, for which it is to be put back.
func (b *buffers) tensor(t tensor.DType, n int) (x tensor.Tensor, lent []byte) {
	lent = b.get(int64(n) * int64(t.Size()))
	return tensor.In(tensor.Host(lent), t, n), lent
}

// put takes back what get has lent, whole.
func (b *buffers) put(p []byte) {
	class := bits.Len64(uint64(cap(p) - 1))
	scribble(p[:cap(p)])
	b.pools[class].Put(unsafe.SliceData(p))
}
