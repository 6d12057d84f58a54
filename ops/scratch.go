package ops

import (
	"math/bits"
	"sync"
)

// scratch lends buffers for what arrives before it may land, by powers of two.
var scratch buffers

type buffers struct{ pools [48]sync.Pool }

func (b *buffers) get(n int64) []byte {
	class := bits.Len64(uint64(max(n, 1) - 1))
	if p, ok := b.pools[class].Get().(*[]byte); ok {
		return (*p)[:n]
	}
	return make([]byte, n, 1<<class)
}

func (b *buffers) put(p []byte) {
	class := bits.Len64(uint64(cap(p) - 1))
	p = p[:0]
	b.pools[class].Put(&p)
}
