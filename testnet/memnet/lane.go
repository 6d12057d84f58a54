package memnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
)

var errBroken = errors.New("lane broken in mid-message")

// A lane is a bounded queue of packets from one rank to another. One sender and
// one receiver use it at a time, so a token in each direction wakes them.
type lane struct {
	sending chan struct{} // holds a token while free: a lock that a context can leave
	next    *packet       // a header that was not accepted; the receiver's own

	mu       sync.Mutex
	queue    []packet
	bytes    int // in the queue, headers too
	readable chan struct{}
	writable chan struct{}

	once   sync.Once
	broken chan struct{}
}

// A packet is a message's header or a piece of its payload.
type packet struct {
	tag [40]byte
	n   int64 // of the message, in a header
	p   []byte
}

func newLane() *lane {
	l := &lane{
		sending: make(chan struct{}, 1), readable: make(chan struct{}, 1), writable: make(chan struct{}, 1),
		broken: make(chan struct{}),
	}
	l.sending <- struct{}{}
	return l
}

// size is what a packet counts against the window.
func (p packet) size() int { return headerSize + len(p.p) }

// push adds a packet if the window is open.
func (l *lane) push(p packet) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) > 0 && l.bytes+p.size() > window {
		return false
	}
	l.queue, l.bytes = append(l.queue, p), l.bytes+p.size()
	wake(l.readable)
	return true
}

// pop takes the next packet if there is one.
func (l *lane) pop() (packet, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return packet{}, false
	}
	p := l.queue[0]
	l.queue[0] = packet{}
	l.queue, l.bytes = l.queue[1:], l.bytes-p.size()
	wake(l.writable)
	return p, true
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
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-world.Done():
		return context.Cause(world)
	}
}

func (l *lane) unlock() { l.sending <- struct{}{} }

func (l *lane) breakUp() { l.once.Do(func() { close(l.broken) }) }

// send is called with the lane locked. Once the header is out, an error breaks
// the lane, for the receiver could not tell where the next message begins.
func (l *lane) send(ctx, world context.Context, tag [40]byte, n int64, parts iter.Seq2[[]byte, error]) error {
	if err := l.put(ctx, world, packet{tag: tag, n: n}); err != nil {
		return err
	}
	buf := make([]byte, 0, min(n, packetSize))
	left := n
	for part, err := range parts {
		if err == nil && int64(len(part)) > left {
			err = fmt.Errorf("%d bytes more than the %d announced", int64(len(part))-left, n)
		}
		if err != nil {
			l.breakUp()
			return err
		}
		left -= int64(len(part))
		for len(part) > 0 {
			k := copy(buf[len(buf):cap(buf)], part)
			buf, part = buf[:len(buf)+k], part[k:]
			if len(buf) < cap(buf) {
				continue
			}
			if err := l.put(ctx, world, packet{p: buf}); err != nil {
				l.breakUp()
				return err
			}
			buf = make([]byte, 0, min(left+int64(len(part)), packetSize))
		}
	}
	if left > 0 {
		l.breakUp()
		return fmt.Errorf("%d of %d bytes: %w", n-left, n, io.ErrUnexpectedEOF)
	}
	return nil
}

func (l *lane) put(ctx, world context.Context, p packet) error {
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
func (l *lane) get(ctx, world context.Context) (packet, error) {
	for {
		if world.Err() != nil {
			return packet{}, context.Cause(world)
		}
		if p, ok := l.pop(); ok {
			return p, nil
		}
		if err := l.wait(ctx, world, l.readable); err != nil {
			if err == errBroken { // and not a context's: that leaves the packet
				if p, ok := l.pop(); ok {
					return p, nil
				}
			}
			return packet{}, err
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
	head := l.next
	if head == nil {
		p, err := l.get(ctx, world)
		if err != nil {
			return fmt.Errorf("memnet: recv: %w", err)
		}
		head = &p
	}
	l.next = head
	if err := accept(head.tag, head.n); err != nil {
		return err
	}
	l.next = nil
	for left := head.n; left > 0; {
		p, err := l.get(ctx, world)
		if err == nil {
			err = land(p.p)
		}
		if err != nil {
			l.breakUp()
			return fmt.Errorf("memnet: recv: %w", err)
		}
		left -= int64(len(p.p))
	}
	return nil
}
