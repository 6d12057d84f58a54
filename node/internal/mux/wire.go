package mux

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	manet "github.com/multiformats/go-multiaddr/net"
)

const (
	// wireIn is the size of a wire's reads in bytes. TLS alone would ask for a record
	// at a time.
	wireIn = 128 << 10
	// wireOut bounds what a wire holds back. The muxer stays far below; what does not
	// is a security layer that has gone wrong.
	wireOut = 4 * maxData
)

// errHeld is a security layer that writes without end.
var errHeld = errors.New("mux: too much is held back on the wire")

// A Wire is a connection below its security layer. It reads in large pieces, and it
// can hold back what is written until the muxer above says that it is enough: then
// many records leave in one system call. Sealing a frame into a held wire also never
// blocks, which is what lets a deadline end a Write without harm to the connection:
// the records that could not leave stay whole, and leave later.
type Wire struct {
	manet.Conn
	in   []byte // what was read and not yet asked for is in[r:n]
	r, n int

	primary *Conn // of a dialled stripe: the connection to join

	mu   sync.Mutex
	held bool
	out  []byte // written and not yet on its way

	busy []byte // on its way: its unsent rest; guarded by the muxer's turn
	full []byte // busy from its beginning, to be used again
}

// NewWire makes a wire of a raw connection, to be given to the upgrader in its place.
// If primary is not nil, a muxer that the wire is dialled for joins it as a stripe.
func NewWire(c manet.Conn, primary *Conn) *Wire { return &Wire{Conn: c, primary: primary} }

// Read serves small reads from a buffer. One goroutine at a time reads, as the
// security layers see to.
func (w *Wire) Read(p []byte) (int, error) {
	if w.r == w.n {
		if len(p) >= wireIn {
			return w.Conn.Read(p)
		}
		if w.in == nil {
			w.in = make([]byte, wireIn)
		}
		n, err := w.Conn.Read(w.in)
		if n <= 0 {
			return 0, err
		}
		w.r, w.n = 0, n
	}
	n := copy(p, w.in[w.r:w.n])
	w.r += n
	return n, nil
}

// Write sends p at once, or keeps a copy until the next flush.
func (w *Wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	if !w.held {
		w.mu.Unlock()
		return w.Conn.Write(p)
	}
	defer w.mu.Unlock()
	if len(w.out)+len(p) > wireOut {
		return 0, errHeld
	}
	w.out = append(w.out, p...)
	return len(p), nil
}

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (w *Wire) SetDeadline(t time.Time) error {
	return errors.Join(w.Conn.SetReadDeadline(t), w.SetWriteDeadline(t))
}

// SetWriteDeadline does nothing once writes are held: they do not block, and the
// deadline of flushes is the muxer's.
func (w *Wire) SetWriteDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held {
		return nil
	}
	return w.Conn.SetWriteDeadline(t)
}

// LocalAddr also tells a muxer which wire it is on: see wireOf.
func (w *Wire) LocalAddr() net.Addr { return &wireAddr{w.Conn.LocalAddr(), w} }

// hold keeps back what is written from now on.
func (w *Wire) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = true
}

// flush sends what is held. After an error that is a timeout it can be called again,
// and goes on where it stopped. One goroutine at a time.
func (w *Wire) flush() error {
	for {
		for len(w.busy) > 0 {
			n, err := w.Conn.Write(w.busy)
			w.busy = w.busy[n:]
			if err != nil {
				return err
			}
		}
		w.mu.Lock()
		w.full, w.out = w.out, w.full[:0]
		w.mu.Unlock()
		if w.busy = w.full; len(w.busy) == 0 {
			return nil
		}
	}
}

// A wireAddr is a local address that knows its wire. Every security layer is another
// type and some wrap the connection twice, but all of them pass the address on.
type wireAddr struct {
	net.Addr
	wire *Wire
}

// wireOf is the wire below a secured connection; nil if there is none.
func wireOf(c net.Conn) *Wire {
	if a, ok := c.LocalAddr().(*wireAddr); ok {
		return a.wire
	}
	return nil
}

// Batch has each write of a muxer that knows nothing of wires, such as yamux, leave in
// one system call instead of one for each record.
func Batch(m network.Multiplexer) network.Multiplexer { return batched{m} }

type batched struct{ network.Multiplexer }

func (b batched) NewConn(c net.Conn, server bool, scope network.PeerScope) (network.MuxedConn, error) {
	if w := wireOf(c); w != nil {
		c = &batch{Conn: c, wire: w}
	}
	return b.Multiplexer.NewConn(c, server, scope)
}

// A batch is a secured connection on a wire that holds each write until it is whole.
type batch struct {
	net.Conn
	wire *Wire
	mu   sync.Mutex // one write at a time
}

func (b *batch) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n := 0; n < len(p); {
		k := min(len(p)-n, maxData) // of any number of bytes, the wire holds a few
		b.wire.hold()
		if _, err := b.Conn.Write(p[n : n+k]); err != nil {
			return n, err
		}
		if err := b.wire.flush(); err != nil {
			return n, err
		}
		n += k
	}
	return len(p), nil
}

// SetWriteDeadline bounds the flushes.
func (b *batch) SetWriteDeadline(t time.Time) error { return b.wire.Conn.SetWriteDeadline(t) }
