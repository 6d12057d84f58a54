//go:build linux && (amd64 || arm64)

package shm

import (
	"errors"
	"sync/atomic"
)

// errScribbled is the error of a connection whose memory says what cannot be.
var errScribbled = errors.New("shm: the other side has scribbled on the shared memory")

// quantum is how many bytes go before the other side hears of them, so that it
// copies out while the next are copied in.
const quantum = 32 << 10

// A tailer is the reading end of a ring. The writer's index is read once for each
// decision and believed only within bounds that are known here.
type tailer struct {
	data []byte
	tail uint64 // bytes read
	head uint64 // the last believed index of the writer
	peer *atomic.Uint64
	mine *atomic.Uint64
}

// refresh looks how far the writer is.
func (t *tailer) refresh() error {
	head := t.peer.Load()
	if n := head - t.tail; n > uint64(len(t.data)) || n < t.head-t.tail {
		return errScribbled
	}
	t.head = head
	return nil
}

// front is the next piece to be read, empty if there is none.
func (t *tailer) front(limit int) []byte {
	at := t.tail & uint64(len(t.data)-1)
	n := min(t.head-t.tail, uint64(len(t.data))-at, uint64(limit))
	return t.data[at : at+n]
}

// took makes room for n bytes more.
func (t *tailer) took(n int) {
	t.tail += uint64(n)
	t.mine.Store(t.tail)
}

// A header is the writing end of a ring.
type header struct {
	data []byte
	head uint64 // bytes written
	tail uint64 // the last believed index of the reader
	peer *atomic.Uint64
	mine *atomic.Uint64
	pourer
}

// refresh looks how far the reader is.
func (h *header) refresh() error {
	tail := h.peer.Load()
	if h.head-tail > h.head-h.tail {
		return errScribbled
	}
	h.tail = tail
	return nil
}

// put copies what fits of p, up to a quantum.
func (h *header) put(p []byte) int {
	at := h.head & uint64(len(h.data)-1)
	room := uint64(len(h.data)) - (h.head - h.tail)
	n := int(min(room, uint64(len(p)), quantum))
	if n == 0 {
		return 0
	}
	k := h.pourer.copy(h.data[at:], p[:n])
	h.pourer.copy(h.data, p[k:n])
	h.head += uint64(n)
	h.mine.Store(h.head)
	return n
}
