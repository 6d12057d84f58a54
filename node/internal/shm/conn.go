//go:build linux && (amd64 || arm64)

package shm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"peermesh/node/internal/pipe"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/transport"
	"golang.org/x/sys/unix"
)

// The two sides of a connection. Each opens streams in slots of its own half.
const (
	dialler  = 0
	listener = 1
)

// A Conn is one end of a connection: shared memory, and the socket over which it
// came. What goes over the socket from then on are bells, and its end is how the
// death of the other process is noticed.
type Conn struct {
	pipe.Ends
	side   int
	socket *net.UnixConn
	raw    syscall.RawConn
	mem    *region
	ours   news // what we are to look at
	theirs news
	seat   seat
	gens   [slots]uint32 // the last generation of each slot; under mu

	incoming chan *Stream  // room for as many as can be open
	freed    pipe.Signal   // raised when a slot of ours may be free
	done     chan struct{} // closed when the connection has ended
	stopped  chan struct{} // closed when serve has returned

	mu       sync.Mutex
	live     map[int]*Stream
	draining map[int]bool // slots of ours that the other side has not given up; whether used much
	free     []int        // slots of ours that were in use
	fresh    int          // the first slot of ours that never was
	err      error        // why the connection has ended
}

var _ transport.CapableConn = (*Conn)(nil)

// newConn takes over everything it is given, and starts to serve.
func newConn(e pipe.Ends, side int, socket *net.UnixConn, mem *region) (*Conn, error) {
	raw, err := socket.SyscallConn()
	if err != nil {
		mem.release()
		return nil, fmt.Errorf("shm: %w", err)
	}
	c := &Conn{Ends: e, side: side, socket: socket, raw: raw, mem: mem,
		ours: mem.news(side), theirs: mem.news(1 - side),
		incoming: make(chan *Stream, StreamsEach), freed: pipe.NewSignal(),
		done: make(chan struct{}), stopped: make(chan struct{}),
		live: make(map[int]*Stream), draining: make(map[int]bool), fresh: side * StreamsEach}
	c.seat.mine, c.seat.theirs, c.seat.moves = c.ours.seat, c.theirs.seat, side == dialler
	c.seat.within = within(raw)
	mem.retain() // for serve
	connected.Add(1)
	go c.serve()
	return c, nil
}

// OpenStream waits while all slots are in use.
func (c *Conn) OpenStream(ctx context.Context) (network.MuxedStream, error) {
	if err := c.Limits.ReserveMemory(RingSize, network.ReservationPriorityMedium); err != nil {
		return nil, err
	}
	for {
		s, err := c.open()
		if s != nil {
			return s, nil
		}
		if err == nil {
			select {
			case <-c.freed:
				continue
			case <-c.done:
				err = c.err
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		c.Limits.ReleaseMemory(RingSize)
		return nil, err
	}
}

// open takes a free slot; neither stream nor error if there is none.
func (c *Conn) open() (*Stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	var slot int
	switch n := len(c.free); {
	case n > 0:
		slot = c.free[n-1]
		c.free = c.free[:n-1]
	case c.fresh < (c.side+1)*StreamsEach:
		slot = c.fresh
		c.fresh++
	default:
		return nil, nil
	}
	if n := len(c.free); n > 0 || c.fresh < (c.side+1)*StreamsEach {
		c.freed.Raise() // for the next who waits
	}
	c.gens[slot]++
	s := newStream(c, slot, c.gens[slot])
	c.live[slot] = s
	c.tell(slot)
	return s, nil
}

// AcceptStream waits for a stream that the other side opens.
func (c *Conn) AcceptStream() (network.MuxedStream, error) {
	select {
	case s := <-c.incoming:
		return s, nil
	case <-c.done:
		return nil, c.err
	}
}

// wake rings for a side that sleeps.
func (c *Conn) wake(asleep *atomic.Uint32, slot int) {
	if asleep.Load() != 0 && asleep.Swap(0) != 0 {
		c.tell(slot)
	}
}

// tell has the other side look at a slot. The caller keeps the memory in use.
func (c *Conn) tell(slot int) {
	c.theirs.bits[slot/64].Or(1 << (slot % 64))
	if c.theirs.rung.Swap(1) != 0 {
		return // it will see this bit too
	}
	_ = c.raw.Write(func(fd uintptr) bool { // fails once the socket is closed, which serve notices
		rang(int(fd), unix.Send(int(fd), bell, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL))
		return true
	})
}

// rang looks whether a bell has gone out. A socket that is full holds bells enough. But
// where the system had no memory for one, who sleeps would sleep for ever, as no other
// follows it: so the connection ends.
func rang(fd int, err error) {
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		_ = unix.Shutdown(fd, unix.SHUT_RDWR) // fails on what has ended by itself
	}
}

// retire gives a stream's slot up, when nothing of this side uses it any more.
func (c *Conn) retire(s *Stream) {
	c.mu.Lock()
	delete(c.live, s.slot) // first: the slot may come back as soon as the flag is there
	s.mine.flags.Store(uint64(s.gen)<<32 | s.flags | flagDone)
	if c.own(s.slot) {
		c.draining[s.slot] = max(s.in.tail, s.out.head) > quantum
		c.reclaim(s.slot)
	}
	c.tell(s.slot)
	c.mu.Unlock()
	c.mem.release()
	c.Limits.ReleaseMemory(RingSize)
}

func (c *Conn) own(slot int) bool { return slot/StreamsEach == c.side }

// reclaim frees a slot of ours once the other side has given it up too. Slots
// beyond the first few return their memory. c.mu is held.
func (c *Conn) reclaim(slot int) {
	used, ok := c.draining[slot]
	raw := c.mem.block(slot, 1-c.side).flags.Load()
	if !ok || uint32(raw>>32) != c.gens[slot] || raw&flagDone == 0 {
		return
	}
	delete(c.draining, slot)
	if used && slot%StreamsEach >= warmSlots {
		_ = c.mem.forget(slot) // fails where the kernel lacks it, and then only keeps memory
	}
	c.free = append(c.free, slot)
	c.freed.Raise()
}

// warmSlots of each side keep the memory of their rings when they are closed, for
// the next stream.
const warmSlots = 16

// violated ends the connection because of what the other side did, and is the
// error of the call that noticed.
func (c *Conn) violated(err error) error {
	c.end(fmt.Errorf("%w (%s)", err, c.Remote))
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection, and waits until its goroutine has gone.
func (c *Conn) Close() error { return c.CloseWithError(network.ConnNoError) }

// CloseWithError is Close with a code for the other side.
func (c *Conn) CloseWithError(code network.ConnErrorCode) error {
	c.end(&network.ConnError{ErrorCode: code})
	<-c.stopped
	return nil
}

// end ends the connection and all streams, with the error that they have here.
func (c *Conn) end(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	var own *network.ConnError
	if errors.As(err, &own) && !own.Remote {
		c.ours.code.Store(closedBit | uint64(own.ErrorCode))
	}
	close(c.done)
	open := make([]*Stream, 0, len(c.live))
	for _, s := range c.live {
		open = append(open, s)
	}
	c.mu.Unlock()
	for _, s := range open {
		s.end(0, err)
	}
	_ = c.socket.Close() // serve notices; an error of a socket given up says nothing
	c.Limits.Done()
	c.mem.release()
}

// closedBit tells a code that was stored from none.
const closedBit = 1 << 32

// IsClosed reports whether the connection has ended.
func (c *Conn) IsClosed() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// As gives the connection itself to who knows its type.
func (c *Conn) As(target any) bool {
	if t, ok := target.(**Conn); ok {
		*t = c
		return true
	}
	return false
}
