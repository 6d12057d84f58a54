package tcp

import (
	"net"
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
	manet "github.com/multiformats/go-multiaddr/net"
)

const (
	// readSize is the size of a wire's reads in bytes. TLS by itself asks for a record
	// or two at a time.
	readSize = 128 << 10
	// batchSize bounds the plaintext that is sealed before it is sent: large enough to
	// make the price of a system call small, and small enough to stay in a core's
	// second cache on its way.
	batchSize = 128 << 10
)

// A wire is a raw connection, below its security layer. It reads in large pieces, and
// holds back what is written until the layers above say that it is enough, so that
// many records leave in one system call.
type wire struct {
	manet.Conn

	in   []byte // in[r:n] was read and not yet asked for; one goroutine reads at a time
	r, n int

	mu    sync.Mutex // guards the rest, and the order of what is sent
	held  bool
	out   []byte // written while held
	err   error  // a send failed half way: what followed would be no record
	pilot *pilot // nil: the link is near
}

// newWire tunes a connection and puts it on a wire.
func newWire(c manet.Conn) *wire { return &wire{Conn: c, pilot: tune(c)} }

// Read serves small reads from a buffer, which it has from the first read on.
func (w *wire) Read(p []byte) (int, error) {
	if w.r == w.n {
		if len(p) >= readSize {
			return w.Conn.Read(p)
		}
		if w.in == nil {
			w.in = make([]byte, readSize)
		}
		n, err := w.Conn.Read(w.in)
		if n <= 0 {
			return 0, err
		}
		w.r, w.n = 0, n // an error comes again
	}
	n := copy(p, w.in[w.r:w.n])
	w.r += n
	return n, nil
}

// Write sends p, or keeps a copy of it until release.
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held {
		w.out = append(w.out, p...)
		return len(p), nil
	}
	return w.send(p)
}

// send writes to the connection. The lock is held, also while that blocks: a record
// that another goroutine writes meanwhile, such as an alert, must not overtake.
func (w *wire) send(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.Conn.Write(p)
	w.err = err
	w.pilot.sent(n)
	return n, err
}

// hold keeps back what is written from now on.
func (w *wire) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = true
}

// release sends what was held.
func (w *wire) release() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = false
	_, err := w.send(w.out)
	w.out = w.out[:0]
	return err
}

// LocalAddr also tells which wire a connection is on: see wireOf.
func (w *wire) LocalAddr() net.Addr { return wireAddr{w.Conn.LocalAddr(), w} }

// A wireAddr is a local address that knows its wire. Every security layer is of another
// type, and the key of a private network is one more layer, but all of them pass the
// address on.
type wireAddr struct {
	net.Addr
	wire *wire
}

// wireOf is the wire below a secured connection; nil if there is none.
func wireOf(c net.Conn) *wire {
	if a, ok := c.LocalAddr().(wireAddr); ok {
		return a.wire
	}
	return nil
}

// Batch has every write of a muxer leave in one system call, instead of one for each
// record, on connections of this package. Others, such as relayed ones, are as before.
func Batch(m network.Multiplexer) network.Multiplexer { return batched{m} }

type batched struct{ network.Multiplexer }

func (b batched) NewConn(c net.Conn, server bool, scope network.PeerScope) (network.MuxedConn, error) {
	if w := wireOf(c); w != nil {
		c = &batch{Conn: c, wire: w}
	}
	return b.Multiplexer.NewConn(c, server, scope)
}

// A batch is a secured connection that has its wire hold each write until it is whole.
type batch struct {
	net.Conn
	wire *wire
	mu   sync.Mutex // one write at a time
}

// Write seals and sends p, in pieces of at most batchSize.
func (b *batch) Write(p []byte) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n < len(p) {
		k := min(len(p)-n, batchSize)
		b.wire.hold()
		_, err := b.Conn.Write(p[n : n+k])
		if sent := b.wire.release(); err == nil {
			err = sent
		}
		if err != nil {
			return n, err
		}
		n += k
	}
	return n, nil
}

// Close does not wait for a write that is stuck, but ends it. Without that, TLS would
// first try to say goodbye behind it for as long as five seconds.
func (b *batch) Close() error {
	if !b.mu.TryLock() {
		err := b.wire.Conn.Close()
		_ = b.Conn.Close() // has nothing left to close
		return err
	}
	defer b.mu.Unlock()
	return b.Conn.Close()
}
