package memnet

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

var errBroken = errors.New("lane broken in mid-message")

// A lane is a bounded queue of packets from one rank to another. One sender and
// one receiver use it at a time, so a token in each direction wakes them.
type lane struct {
	sending chan struct{} // holds a token while free: a lock that a context can leave
	sender  sender        // used with the lock
	next    *packet       // of a message that was not accepted; the receiver's own
	taken   packet        // what next points to

	mu       sync.Mutex
	queue    []packet // a ring, of which count are in use from first on
	first    int
	count    int
	bytes    int // in the queue, headers too
	readable chan struct{}
	writable chan struct{}

	once   sync.Once
	broken chan struct{}
}

// A packet is a piece of a message's payload, and its header if it is the first.
type packet struct {
	tag [40]byte
	n   int64 // of the message
	p   []byte
}

func newLane() *lane {
	l := &lane{
		sending: make(chan struct{}, 1), readable: make(chan struct{}, 1), writable: make(chan struct{}, 1),
		broken: make(chan struct{}), queue: make([]packet, 4),
	}
	l.sender.lane = l
	l.sender.yield = l.sender.add
	l.sending <- struct{}{}
	return l
}

// size is what a packet counts against the window.
func (p *packet) size() int { return headerSize + len(p.p) }

// push adds a packet if the window is open.
func (l *lane) push(p *packet) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count > 0 && l.bytes+p.size() > window {
		return false
	}
	if l.count == len(l.queue) {
		l.grow()
	}
	l.queue[(l.first+l.count)%len(l.queue)] = *p
	l.count++
	l.bytes += p.size()
	wake(l.readable)
	return true
}

func (l *lane) grow() {
	ring := make([]packet, 2*len(l.queue))
	n := copy(ring, l.queue[l.first:])
	copy(ring[n:], l.queue[:l.first])
	l.queue, l.first = ring, 0
}

// pop takes the next packet if there is one.
func (l *lane) pop(p *packet) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == 0 {
		return false
	}
	at := &l.queue[l.first]
	*p, at.p = *at, nil
	l.first = (l.first + 1) % len(l.queue)
	l.count--
	l.bytes -= p.size()
	wake(l.writable)
	return true
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // a token is waiting there already
	}
}

func (l *lane) lock(ctx, world context.Context) error {
	select {
	case <-l.sending:
		return nil
	default:
	}
	select {
	case <-l.sending:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-world.Done():
		return context.Cause(world)
	}
}

func (l *lane) unlock() { l.sending <- struct{}{} }

func (l *lane) breakUp() { l.once.Do(func() { close(l.broken) }) }

// put adds a packet when the window is open.
func (l *lane) put(ctx, world context.Context, p *packet) error {
	for {
		select {
		case <-l.broken:
			return errBroken
		default:
		}
		if world.Err() != nil {
			return context.Cause(world)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if l.push(p) {
			return nil
		}
		if err := l.wait(ctx, world, l.writable); err != nil {
			return err
		}
	}
}

// get takes the next packet. What was sent before a break still arrives.
func (l *lane) get(ctx, world context.Context, p *packet) error {
	for {
		if world.Err() != nil {
			return context.Cause(world)
		}
		if l.pop(p) {
			return nil
		}
		if err := l.wait(ctx, world, l.readable); err != nil {
			if err == errBroken && l.pop(p) { // and not a context's: that leaves the packet
				return nil
			}
			return err
		}
	}
}

func (l *lane) wait(ctx, world context.Context, token chan struct{}) error {
	select {
	case <-token:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-world.Done():
		return context.Cause(world)
	case <-l.broken:
		return errBroken
	}
}

func (l *lane) recv(ctx, world context.Context, accept func([40]byte, int64) error, land func([]byte) error) error {
	if l.next == nil {
		if err := l.get(ctx, world, &l.taken); err != nil {
			return fmt.Errorf("memnet: recv: %w", err)
		}
		l.next = &l.taken
	}
	if err := accept(l.next.tag, l.next.n); err != nil {
		return err
	}
	l.next = nil
	for p, left := &l.taken, l.taken.n; ; {
		err := l.land(p, &left, land)
		if err == nil && left > 0 {
			err = l.get(ctx, world, p)
		}
		if err != nil {
			l.breakUp()
			return fmt.Errorf("memnet: recv: %w", err)
		}
		if left == 0 && p.p == nil {
			return nil
		}
	}
}

// land lends a packet's bytes, if it has any, and gives its buffer back.
func (l *lane) land(p *packet, left *int64, land func([]byte) error) (err error) {
	if len(p.p) > 0 {
		err = land(p.p)
	}
	*left -= int64(len(p.p))
	giveBack(p.p)
	p.p = nil
	return err
}
