package memory

import (
	"io"
	"os"
	"sync"

	"peermesh/node/internal/pipe"
)

const (
	// window bounds what a half holds ahead of its reader, in bytes.
	window = 256 << 10
	// firstBuffer is what its buffer has at first.
	firstBuffer = 4 << 10
	// long is the length from which a write is lent rather than copied: below, the
	// writer would wait for longer than the copy takes.
	long = 128 << 10
)

// A half carries bytes one way. One call may read from it while another writes.
type half struct {
	readable, writable pipe.Signal

	mu    sync.Mutex
	buf   []byte // a ring
	r, n  int    // buf holds n bytes, from r on
	lent  []byte // what a waiting writer offers; it comes after buf
	using bool   // a reader is at work on either without holding the lock

	fin           bool  // the writer has ended
	stop          bool  // the reader has
	readErr       error // the connection or the stream broke: why, to the reader
	writeErr      error // the same to the writer
	readerClosed  bool  // by Close or CloseRead of the reader's side
	writerClosed  bool
	read, written pipe.Deadline
}

func newHalf() *half {
	return &half{readable: pipe.NewSignal(), writable: pipe.NewSignal()}
}

// take waits for bytes and lends at most limit of them, in one piece, to use,
// which says how many of them it has taken.
func (h *half) take(limit int, use func(p []byte) (int, error)) (int, error) {
	h.mu.Lock()
	for {
		p, err := h.front()
		if err != nil {
			h.mu.Unlock()
			return 0, err
		}
		if len(p) > 0 {
			h.using = true
			h.mu.Unlock()
			k, err := use(p[:min(limit, len(p))])
			h.took(k)
			return k, err
		}
		h.mu.Unlock()
		select {
		case <-h.readable:
		case <-h.read.Wait():
		}
		h.mu.Lock()
	}
}

// front is the next piece that can be read: empty if there is none yet.
func (h *half) front() ([]byte, error) {
	switch {
	case h.readErr != nil:
		return nil, h.readErr
	case h.readerClosed:
		return nil, pipe.ErrClosed
	case h.read.Passed():
		return nil, os.ErrDeadlineExceeded
	case h.n > 0:
		return h.buf[h.r:min(h.r+h.n, len(h.buf))], nil
	case len(h.lent) > 0:
		return h.lent, nil
	case h.fin:
		return nil, io.EOF
	}
	return nil, nil
}

// took ends what front began: k bytes of the piece are read.
func (h *half) took(k int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.using = false
	if h.n > 0 {
		h.n -= k
		if h.r += k; h.r >= len(h.buf) || h.n == 0 {
			h.r = 0
		}
	} else {
		h.lent = h.lent[k:]
	}
	h.writable.Raise()
}

// put writes all of b, or says how much of it went before the error.
func (h *half) put(b []byte) (int, error) {
	total := len(b)
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		if err := h.refusal(); err != nil || len(b) == 0 {
			return total - len(b), err
		}
		switch {
		case len(b) >= long:
			b = h.lend(b)
		case h.n < window:
			b = b[h.store(b):]
			h.readable.Raise()
		default:
			h.await()
		}
	}
}

// refusal is why nothing can be written.
func (h *half) refusal() error {
	switch {
	case h.writeErr != nil:
		return h.writeErr
	case h.writerClosed:
		return pipe.ErrClosed
	case h.stop:
		return pipe.ErrStopped
	case h.written.Passed():
		return os.ErrDeadlineExceeded
	}
	return nil
}

// await lets others at the half until something has changed.
func (h *half) await() {
	h.mu.Unlock()
	defer h.mu.Lock()
	select {
	case <-h.writable:
	case <-h.written.Wait():
	}
}

// lend offers b to the reader, waits until it is taken or nothing more will be,
// and returns the rest. Nobody looks at b when it returns.
func (h *half) lend(b []byte) []byte {
	h.lent = b
	h.readable.Raise()
	for len(h.lent) > 0 && h.refusal() == nil {
		h.await()
	}
	for h.using { // for as long as the use takes, whatever the deadline
		h.mu.Unlock()
		<-h.writable
		h.mu.Lock()
	}
	rest := h.lent
	h.lent = nil
	return rest
}

// store copies what fits into the buffer, which grows for it.
func (h *half) store(b []byte) int {
	if want := min(h.n+len(b), window); want > len(h.buf) {
		size := max(len(h.buf), firstBuffer)
		for size < want {
			size *= 2
		}
		grown := make([]byte, size)
		k := copy(grown, h.buf[h.r:min(h.r+h.n, len(h.buf))])
		copy(grown[k:], h.buf[:h.n-k])
		h.buf, h.r = grown, 0 // a reader at work has the old one, with the same bytes
	}
	w := (h.r + h.n) & (len(h.buf) - 1)
	free := len(h.buf) - h.n
	k := copy(h.buf[w:min(w+free, len(h.buf))], b)
	k += copy(h.buf[:min(free-k, h.r)], b[k:])
	h.n += k
	return k
}

// change does f under the lock and lets both sides see it.
func (h *half) change(f func()) {
	h.mu.Lock()
	f()
	h.mu.Unlock()
	h.readable.Raise()
	h.writable.Raise()
}

// fail breaks the half for good, with an error for each side.
func (h *half) fail(reader, writer error) {
	h.change(func() {
		if h.readErr == nil {
			h.readErr = reader
		}
		if h.writeErr == nil {
			h.writeErr = writer
		}
	})
}
