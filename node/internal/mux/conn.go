package mux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

const (
	// maxStreams bounds the streams that one side has open on a secured connection.
	// Opening more waits; a peer that does not is cut off.
	maxStreams = 4096
	// farewell bounds how long Close tries to tell the peer why.
	farewell = 100 * time.Millisecond
)

// A Conn is one libp2p connection: streams over a secured connection and, perhaps,
// further ones that have joined it as stripes.
type Conn struct {
	sec   net.Conn // seals what goes onto the wire
	wire  *Wire
	token token
	bound func(*Conn) // forgets the token
	span  memory
	stripes

	turn chan struct{} // one token: the right to seal and to flush
	open chan struct{} // a token for each stream of ours
	due  chan struct{} // poked when the clerk has something to tell
	done chan struct{} // closed when the connection has failed
	busy sync.WaitGroup

	seals [2][]byte // scratch of the turn's holder: frames' beginnings, and reports

	mu      sync.Mutex
	err     error // why it failed, or was closed
	streams map[uint32]*Stream
	nextID  uint32    // of streams opened here
	lastID  uint32    // of streams opened by the peer
	foreign int       // how many of the streams are the peer's; ours have tokens
	tellers []*Stream // streams that have something to tell
	flusher *Stream   // whose write deadline bounds the flush under way
	limited time.Time // the wire's deadline
}

// memory is what a connection accounts for in libp2p's resource manager.
type memory interface {
	ReserveMemory(size int, prio uint8) error
	ReleaseMemory(size int)
	Done()
}

var _ network.MuxedConn = (*Conn)(nil)

// start runs the connection until it fails.
func (c *Conn) start() {
	c.busy.Go(func() { c.fail(c.demux()) })
	c.busy.Go(func() {
		c.clerk()
		c.closeStripes()
	})
}

// OpenStream makes a stream, on the stripe whose turn it is. The peer learns of it at
// once, or with the first bytes.
func (c *Conn) OpenStream(ctx context.Context) (network.MuxedStream, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	on := c.stripe()
	select {
	case on.open <- struct{}{}:
	case <-on.done:
		return nil, on.failure()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s := on.newStream(0)
	s.ours = true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell()
	return s, nil
}

// number gives a stream of ours its number, in the order in which the peer learns of
// them. The stream's lock and the turn are held.
func (c *Conn) number(s *Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.opened = true
	s.id = c.nextID
	c.nextID += 2
	if c.err == nil {
		c.streams[s.id] = s
	}
}

// AcceptStream waits for a stream that the peer opens, on any stripe.
func (c *Conn) AcceptStream() (network.MuxedStream, error) {
	if s := c.inbox.take(c.done); s != nil {
		return s, nil
	}
	return nil, c.failure()
}

// IsClosed reports whether the connection has failed or was closed.
func (c *Conn) IsClosed() bool { return isClosed(c.done) }

// Close is CloseWithError(0).
func (c *Conn) Close() error { return c.CloseWithError(network.ConnNoError) }

// CloseWithError ends the connection and all streams, and tells the peer the code if it
// listens. It waits for the connection's goroutines.
func (c *Conn) CloseWithError(code network.ConnErrorCode) error {
	if !c.IsClosed() {
		c.away(code)
	}
	c.fail(&network.ConnError{ErrorCode: code, TransportError: net.ErrClosed})
	c.busy.Wait()
	return nil
}

// As finds the Conn behind a libp2p connection.
func (c *Conn) As(target any) bool {
	if t, ok := target.(**Conn); ok {
		*t = c
		return true
	}
	return false
}

// away sends the last frame, if that is possible at once.
func (c *Conn) away(code network.ConnErrorCode) {
	var late deadline
	late.set(time.Now().Add(farewell))
	defer late.set(time.Time{})
	if c.take(late.wait()) != nil {
		return
	}
	defer c.give()
	if c.settle() != nil {
		return
	}
	if _, err := c.sec.Write(appendCode(nil, frameAway, 0, uint32(code))); err != nil {
		return
	}
	_ = c.wire.Conn.SetWriteDeadline(time.Now().Add(farewell))
	_ = c.wire.flush() // the peer learns of the end in any case
}

// failure is why calls fail after the end.
func (c *Conn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// fail ends the connection. Only the first reason counts. It does not wait.
func (c *Conn) fail(err error) {
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("mux: the peer ended the connection without a word: %w", io.ErrUnexpectedEOF)
	}
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	streams := c.streams
	c.streams = nil
	c.mu.Unlock()
	close(c.done)
	_ = c.sec.Close() // frees whoever reads or flushes
	if c.bound != nil {
		c.bound(c)
	}
	for _, s := range streams {
		s.orphan()
	}
	c.failStripes(err)
	c.span.Done()
}

// timedOut tells a deadline from a failure.
func timedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
