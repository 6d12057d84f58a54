package mux

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
)

// Primary is the connection that this one has joined as a stripe; nil: it is whole by
// itself.
func (c *Conn) Primary() *Conn { return c.primary }

// AwaitReady waits until the peer has accepted the connection, or the stripe.
func (c *Conn) AwaitReady(ctx context.Context) error {
	select {
	case <-c.ready:
		return nil
	case <-c.done:
		return c.failure()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Spread has new streams go to a stripe that was dialled and accepted, too.
func (c *Conn) Spread(stripe *Conn) bool { return c.join(stripe) }

// join adds a stripe to those that streams are dealt to.
func (c *Conn) join(stripe *Conn) bool {
	c.tied.Lock()
	defer c.tied.Unlock()
	if c.closing || len(c.list) >= MaxStripes-1 {
		return false
	}
	c.list = append(c.list, stripe)
	return true
}

// Keep has the connection close what a stripe came with when it ends; if it has ended,
// that is now.
func (c *Conn) Keep(stripe io.Closer) {
	c.tied.Lock()
	if !c.closing {
		c.closers = append(c.closers, stripe)
		c.tied.Unlock()
		return
	}
	c.tied.Unlock()
	_ = stripe.Close() // nothing is left to be told
}

// stripe is the secured connection for the next stream.
func (c *Conn) stripe() *Conn {
	c.tied.Lock()
	defer c.tied.Unlock()
	if len(c.list) == 0 {
		return c
	}
	c.turnOf = (c.turnOf + 1) % (len(c.list) + 1)
	if c.turnOf == 0 {
		return c
	}
	return c.list[c.turnOf-1]
}

// failStripes has a failure of one be the failure of all: streams are spread over them,
// and half of a world's lanes are of no use.
func (c *Conn) failStripes(err error) {
	if c.primary != nil {
		if isClosed(c.ready) { // else it has not been part of it
			c.primary.fail(fmt.Errorf("mux: a stripe of the connection broke: %w", err))
		}
		return
	}
	c.tied.Lock()
	c.closing = true
	list := c.list
	c.list = nil
	c.tied.Unlock()
	for _, s := range list {
		s.fail(err)
	}
}

// closeStripes is the end of what stripes came with.
func (c *Conn) closeStripes() {
	c.tied.Lock()
	closers := c.closers
	c.closers = nil
	c.tied.Unlock()
	for _, s := range closers {
		_ = s.Close() // they have failed; this frees their resources
	}
}

// An inbox holds streams that the peer has opened and nobody has accepted yet. They are
// as many as it may have open, and at most that many that it has reset meanwhile.
type inbox struct {
	some  chan struct{}
	mu    sync.Mutex
	list  []*Stream
	limit int // length at which to look for those that were reset
}

func newInbox() *inbox { return &inbox{some: make(chan struct{}, 1), limit: maxStreams} }

// put adds a stream.
func (b *inbox) put(s *Stream) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.list) >= b.limit {
		b.list = slices.DeleteFunc(b.list, (*Stream).broken)
		b.limit = 2*len(b.list) + maxStreams
	}
	b.list = append(b.list, s)
	poke(b.some)
}

// take waits for a stream; nil if done is closed before there is one.
func (b *inbox) take(done <-chan struct{}) *Stream {
	for !isClosed(done) {
		if s := b.next(); s != nil {
			return s
		}
		select {
		case <-b.some:
		case <-done:
		}
	}
	return nil
}

func (b *inbox) next() *Stream {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.list) == 0 {
		return nil
	}
	s := b.list[0]
	b.list[0] = nil
	b.list = b.list[1:]
	if len(b.list) > 0 {
		poke(b.some) // for another who waits
	}
	return s
}

// Wire is what the connection is on.
func (c *Conn) Wire() *Wire { return c.wire }
