package mux

import "sync"

const (
	// chunkSize is that of the pieces in bytes in which received data waits.
	chunkSize = 64 << 10
	// chunkWhole is the least that is worth a chunk of its own; less is copied behind
	// what the last chunk holds, so that chunks are never mostly air.
	chunkWhole = chunkSize / 2
)

var chunks = sync.Pool{New: func() any { return new([chunkSize]byte) }}

// A fifo is received data in order. The zero value is empty.
type fifo struct {
	list []piece
	size int // bytes in all
}

type piece struct {
	chunk *[chunkSize]byte
	r, n  int // chunk[r:n] has not been read
}

// room is how many chunks an append of n bytes needs.
func (f *fifo) room(n int) int {
	if k := len(f.list); k > 0 {
		n -= min(n, chunkSize-f.list[k-1].n)
	}
	return (n + chunkSize - 1) / chunkSize
}

// append copies p behind the rest.
func (f *fifo) append(p []byte) {
	f.size += len(p)
	for len(p) > 0 {
		if k := len(f.list); k == 0 || f.list[k-1].n == chunkSize {
			f.list = append(f.list, piece{chunk: chunks.Get().(*[chunkSize]byte)})
		}
		last := &f.list[len(f.list)-1]
		n := copy(last.chunk[last.n:], p)
		last.n += n
		p = p[n:]
	}
}

// hand adds a chunk with n bytes, which is the fifo's from now on.
func (f *fifo) hand(c *[chunkSize]byte, n int) {
	f.size += n
	f.list = append(f.list, piece{chunk: c, n: n})
}

// read takes bytes from the front.
func (f *fifo) read(p []byte) (n int) {
	used := 0
	for used < len(f.list) && n < len(p) {
		first := &f.list[used]
		k := copy(p[n:], first.chunk[first.r:first.n])
		n += k
		if first.r += k; first.r == first.n {
			chunks.Put(first.chunk)
			used++
		}
	}
	if used > 0 {
		f.list = f.list[:copy(f.list, f.list[used:])]
	}
	f.size -= n
	return n
}

// drop forgets everything.
func (f *fifo) drop() {
	for _, p := range f.list {
		chunks.Put(p.chunk)
	}
	f.list, f.size = nil, 0
}
