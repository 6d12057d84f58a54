package memnet

import (
	"context"
	"fmt"
	"io"
	"iter"
	"sync"
	"unsafe"
)

// A sender cuts a message into packets.
type sender struct {
	lane  *lane
	yield func(part []byte, err error) bool // add: made once

	ctx, world context.Context
	packet     packet // being filled
	left       int64  // bytes that parts have yet to yield
	begun      bool   // a packet has left
	err        error
}

// send is called with the lane locked. An error breaks the lane once a packet has left,
// for the receiver could not tell where the next message begins, and so do parts that
// are not what was announced.
func (s *sender) send(ctx, world context.Context, tag [40]byte, n int64, parts iter.Seq2[[]byte, error]) error {
	s.ctx, s.world, s.left, s.begun, s.err = ctx, world, n, false, nil
	s.packet = packet{tag: tag, n: n, p: borrow(n)}
	parts(s.yield)
	switch {
	case s.err != nil:
	case s.left > 0:
		s.fail(fmt.Errorf("%d of %d bytes: %w", n-s.left, n, io.ErrUnexpectedEOF))
	case len(s.packet.p) > 0 || n == 0:
		s.put()
	}
	if s.err != nil {
		giveBack(s.packet.p)
	}
	s.packet.p, s.ctx, s.world = nil, nil, nil
	return s.err
}

// add takes a part of the payload, and sends each packet that it fills and that is not
// the last.
func (s *sender) add(part []byte, err error) bool {
	if err == nil && int64(len(part)) > s.left {
		err = fmt.Errorf("%d bytes more than announced", int64(len(part))-s.left)
	}
	if err != nil {
		s.fail(err)
		return false
	}
	s.left -= int64(len(part))
	for len(part) > 0 {
		p := s.packet.p
		k := copy(p[len(p):cap(p)], part)
		s.packet.p, part = p[:len(p)+k], part[k:]
		rest := s.left + int64(len(part))
		if len(s.packet.p) < cap(p) || rest == 0 {
			continue
		}
		if s.put(); s.err != nil {
			return false
		}
		s.packet.p = borrow(rest)
	}
	return true
}

// put sends a packet.
func (s *sender) put() {
	if err := s.lane.put(s.ctx, s.world, &s.packet); err != nil {
		if s.err = err; s.begun {
			s.lane.breakUp()
		}
		return
	}
	s.begun = true
}

func (s *sender) fail(err error) {
	s.err = err
	s.lane.breakUp()
}

// Buffers of packets, by their capacity. A pool holds pointers to their first bytes,
// since a slice in an interface would be an allocation.
var small, large sync.Pool

// borrow is an empty buffer for that many bytes or a part of them.
func borrow(n int64) []byte {
	switch {
	case n == 0:
		return nil
	case n <= smallSize:
		return lent(&small, smallSize)
	}
	return lent(&large, packetSize)
}

func lent(pool *sync.Pool, size int) []byte {
	if p, ok := pool.Get().(*byte); ok {
		return unsafe.Slice(p, size)[:0]
	}
	return make([]byte, 0, size)
}

func giveBack(p []byte) {
	switch cap(p) {
	case smallSize:
		small.Put(unsafe.SliceData(p))
	case packetSize:
		large.Put(unsafe.SliceData(p))
	}
}
