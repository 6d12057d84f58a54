package ops

import (
	"math/bits"
	"sync"
	"unsafe"
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

// put takes back what get has lent, whole.
func (b *buffers) put(p []byte) {
	class := bits.Len64(uint64(cap(p) - 1))
	scribble(p[:cap(p)])
	b.pools[class].Put(unsafe.SliceData(p))
}
