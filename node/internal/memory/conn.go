package memory

import (
	"context"
	"fmt"
	"sync"

	"peermesh/node/internal/pipe"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/transport"
)

// A conn is one end of a connection.
type conn struct {
	pipe.Ends
	other    *conn
	incoming chan *Stream
	done     chan struct{} // closed when the connection has ended

	mu      sync.Mutex
	streams map[*Stream]struct{} // those that are not closed
	err     error                // why it has ended
}

var _ transport.CapableConn = (*conn)(nil)

func newConn(e pipe.Ends) *conn {
	return &conn{Ends: e, incoming: make(chan *Stream, pipe.Backlog),
		done: make(chan struct{}), streams: make(map[*Stream]struct{})}
}

// OpenStream waits while too many streams are not accepted yet.
func (c *conn) OpenStream(ctx context.Context) (network.MuxedStream, error) {
	there, back := newHalf(), newHalf()
	near := &Stream{conn: c, in: back, out: there}
	far := &Stream{conn: c.other, in: there, out: back}
	if err := c.keep(near); err != nil {
		return nil, err
	}
	if err := c.other.keep(far); err != nil {
		c.forget(near)
		return nil, fmt.Errorf("memory: refused by the other side: %w", err)
	}
	select {
	case c.other.incoming <- far:
		return near, nil
	case <-c.done:
		return nil, c.err
	case <-ctx.Done():
		_ = near.Reset() // does not fail
		c.other.forget(far)
		return nil, context.Cause(ctx)
	}
}

// AcceptStream waits for a stream that the other side opens.
func (c *conn) AcceptStream() (network.MuxedStream, error) {
	select {
	case s := <-c.incoming:
		return s, nil
	case <-c.done:
		return nil, c.err
	}
}

// keep takes a stream in and reserves what its reader may leave unread.
func (c *conn) keep(s *Stream) error {
	full := c.Limits.ReserveMemory(window, network.ReservationPriorityMedium)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil: // says more than full, which then holds as well
		if full == nil {
			c.Limits.ReleaseMemory(window)
		}
		return c.err
	case full != nil:
		return full
	}
	c.streams[s] = struct{}{}
	return nil
}

// forget is the reverse of keep; false if it has been done before.
func (c *conn) forget(s *Stream) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.streams[s]; !ok {
		return false
	}
	delete(c.streams, s)
	c.Limits.ReleaseMemory(window)
	s.in.read.Set(never)
	s.out.written.Set(never)
	return true
}

// Close ends the connection on both sides, and all of its streams.
func (c *conn) Close() error { return c.CloseWithError(network.ConnNoError) }

// CloseWithError is Close with a code for the other side.
func (c *conn) CloseWithError(code network.ConnErrorCode) error {
	c.end(&network.ConnError{ErrorCode: code})
	c.other.end(&network.ConnError{ErrorCode: code, Remote: true})
	return nil
}

func (c *conn) end(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	close(c.done)
	open := make([]*Stream, 0, len(c.streams))
	for s := range c.streams {
		open = append(open, s)
	}
	c.mu.Unlock()
	for _, s := range open {
		c.forget(s)
		s.end(err)
	}
	c.Limits.Done()
}

// IsClosed reports whether the connection has ended.
func (c *conn) IsClosed() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// As gives the connection itself to who knows its type.
func (c *conn) As(target any) bool {
	if t, ok := target.(**conn); ok {
		*t = c
		return true
	}
	return false
}
