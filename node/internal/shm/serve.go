//go:build linux && (amd64 || arm64)

package shm

import (
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"peermesh/node/internal/pipe"

	"github.com/libp2p/go-libp2p/core/network"
)

// bell is what goes over the socket. Its value says nothing.
var bell = []byte{'!'}

// serve is the connection's goroutine. It hears bells, and ends with the socket.
func (c *Conn) serve() {
	defer close(c.stopped)
	defer c.mem.release()
	defer connected.Add(-1)
	attend(c)
	defer neglect(c)
	var heard [64]byte
	for {
		if _, err := c.socket.Read(heard[:]); err != nil {
			c.end(c.farewell())
			return
		}
		if !c.heed() {
			return
		}
	}
}

// heed does what a bell asks for, and reports whether the connection goes on. Several may
// at once: what one has begun the others leave alone.
func (c *Conn) heed() bool {
	c.ours.rung.Store(0) // before looking: what comes later rings again
	if err := c.look(); err != nil {
		c.end(fmt.Errorf("%w (%s)", err, c.Remote))
		return false
	}
	return true
}

// attended are the process's connections. As long as one is among them its memory is
// mapped.
var attended struct {
	sync.RWMutex
	all []*Conn
}

func attend(c *Conn) {
	attended.Lock()
	defer attended.Unlock()
	attended.all = append(attended.all, c)
}

func neglect(c *Conn) {
	attended.Lock()
	defer attended.Unlock()
	attended.all = slices.DeleteFunc(attended.all, func(o *Conn) bool { return o == c })
}

// hear heeds all bells that ring in the process. It is for who looks where Go runs nothing
// beside: as long as something can run there, the runtime asks for bells every 10 ms.
func hear() {
	attended.RLock()
	defer attended.RUnlock()
	for _, c := range attended.all {
		if c.ours.rung.Load() != 0 {
			c.heed()
		}
	}
}

// farewell is why the other side has closed the socket.
func (c *Conn) farewell() error {
	if code := c.theirs.code.Load(); code&closedBit != 0 {
		return &network.ConnError{ErrorCode: network.ConnErrorCode(code), Remote: true}
	}
	return fmt.Errorf("shm: %s: %w", c.Remote, pipe.ErrGone)
}

// look looks at every slot that the other side has marked.
func (c *Conn) look() error {
	for i := range c.ours.bits {
		word := &c.ours.bits[i]
		if word.Load() == 0 {
			continue
		}
		for marked := word.Swap(0); marked != 0; marked &= marked - 1 {
			if err := c.visit(64*i + bits.TrailingZeros64(marked)); err != nil {
				return err
			}
		}
	}
	return nil
}

// visit wakes who waits in a slot, takes a new stream, or takes a slot back.
func (c *Conn) visit(slot int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil
	}
	s := c.live[slot]
	if c.own(slot) {
		if s != nil {
			s.reads.signal.Raise()
			s.writes.signal.Raise()
		} else {
			c.reclaim(slot)
		}
		return nil
	}
	gen := uint32(c.mem.block(slot, 1-c.side).flags.Load() >> 32)
	switch {
	case gen == c.gens[slot]:
		if s != nil {
			s.reads.signal.Raise()
			s.writes.signal.Raise()
		}
		return nil
	case s != nil || gen != c.gens[slot]+1:
		return errScribbled // a slot taken again before it was given up
	}
	return c.accept(slot, gen)
}

// accept takes a stream that the other side has opened, or refuses it at once.
// c.mu is held.
func (c *Conn) accept(slot int, gen uint32) error {
	c.gens[slot] = gen
	if err := c.Limits.ReserveMemory(RingSize, network.ReservationPriorityMedium); err != nil {
		b := c.mem.block(slot, c.side)
		b.begin(gen-1, 0)
		b.code.Store(uint32(network.StreamResourceLimitExceeded))
		b.flags.Store(uint64(gen)<<32 | flagOpen | flagReset | flagDone)
		c.tell(slot)
		return nil
	}
	s := newStream(c, slot, gen)
	s.known.Store(true)
	c.live[slot] = s
	c.incoming <- s // has room: a slot is in it once
	return nil
}
