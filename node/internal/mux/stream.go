package mux

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// Window is how many bytes a stream carries ahead of its reader. It is fixed: a window
// that both sides know from the start needs no negotiation, and cannot be got wrong.
const Window = 1 << 20

// giveBack is how much a reader takes before the sender is told.
const giveBack = Window / 4

// lingering bounds how long a closed stream waits for the other side to end its
// direction. Then it is reset.
const lingering = time.Minute

// A Stream is one of many byte streams in each direction of a Conn.
type Stream struct {
	c    *Conn
	id   uint32 // zero as long as the peer has not been told of the stream
	ours bool   // opened here

	readable, writable chan struct{} // poked when a waiting call should look again
	rdl, wdl           deadline

	mu     sync.Mutex
	in     fifo
	room   int // bytes that the peer may still send
	owed   int // bytes read of which the peer has not been told
	credit int // bytes that may still be sent
	held   int // bytes of memory reserved: chunks that were in use at once

	opened   bool  // the peer has been told of the stream, or told us
	queued   bool  // in the connection's list of streams with something to tell
	finDue   bool  // CloseWrite: to be told
	finSent  bool  // nothing more may be written
	finGot   bool  // nothing more will come
	shut     bool  // CloseRead: what comes is dropped
	reset    error // why the stream broke; nil: it did not
	resetDue bool  // to be told, with the code
	code     uint32
	gone     bool // the connection knows it no more
	linger   *time.Timer
}

var _ network.MuxedStream = (*Stream)(nil)

func (c *Conn) newStream(id uint32) *Stream {
	return &Stream{
		c: c, id: id, room: Window, credit: Window,
		readable: make(chan struct{}, 1), writable: make(chan struct{}, 1),
	}
}

// errShut is a call on a side of a stream that was closed here.
var errShut = fmt.Errorf("mux: stream is closed: %w", os.ErrClosed)

// Read returns at least one byte, io.EOF after the last one of a stream that the peer
// ended, or an error.
func (s *Stream) Read(p []byte) (int, error) {
	expired := s.rdl.wait()
	for {
		s.mu.Lock()
		switch {
		case s.reset != nil:
			s.mu.Unlock()
			return 0, s.reset
		case s.shut:
			s.mu.Unlock()
			return 0, errShut
		case isClosed(expired):
			s.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case s.in.size > 0 || len(p) == 0:
			n := s.in.read(p)
			s.take(n)
			s.free()
			more := s.in.size > 0
			s.mu.Unlock()
			if more {
				poke(s.readable) // for another reader, if there is one
			}
			return n, nil
		case s.finGot:
			s.mu.Unlock()
			return 0, io.EOF
		}
		s.mu.Unlock()
		select {
		case <-s.readable:
		case <-expired:
		case <-s.c.done:
			if s.drained() {
				return 0, s.c.failure()
			}
		}
		expired = s.rdl.wait()
	}
}

// drained reports whether nothing is left to read of a stream whose connection ended.
func (s *Stream) drained() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.in.size == 0 && !s.finGot && s.reset == nil && !s.shut
}

// take counts n bytes as read, or as dropped. The lock is held.
func (s *Stream) take(n int) {
	if s.owed += n; s.owed >= giveBack && !s.finGot {
		s.tell()
	}
}

// tell has the clerk send what the stream has to tell. The lock is held.
func (s *Stream) tell() {
	if !s.queued {
		s.queued = true
		s.c.queue(s)
	}
}

// Write returns when all of p is sealed and on its way, or at the deadline with how
// much of it is.
func (s *Stream) Write(p []byte) (n int, err error) {
	for {
		k, err := s.send(p[n:])
		n += k
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

// send writes one frame: as much of p as it and the credit allow.
func (s *Stream) send(p []byte) (int, error) {
	if err := s.awaitCredit(len(p)); err != nil || len(p) == 0 {
		return 0, err
	}
	if err := s.c.take(s.wdl.wait()); err != nil {
		return 0, err
	}
	defer s.c.give()
	if err := s.c.settle(); err != nil { // what is older goes first
		return 0, err
	}
	if len(s.c.wire.busy) > 0 { // what an earlier flush did not get rid of
		if err := s.c.flush(s); err != nil {
			return 0, err
		}
	}
	s.mu.Lock()
	if err := s.unwritable(); err != nil {
		s.mu.Unlock()
		return 0, err
	}
	n := min(len(p), s.credit, maxData) // another writer may have had the credit
	s.credit -= n
	open := !s.opened && n > 0
	if open {
		s.c.number(s)
	}
	more := s.credit > 0
	s.mu.Unlock()
	if more {
		poke(s.writable)
	}
	if n == 0 {
		return 0, nil
	}
	if err := s.c.seal(open, s.id, p[:n]); err != nil {
		return 0, err
	}
	if err := s.c.flush(s); err != nil && (n < len(p) || !timedOut(err)) {
		return n, err
	}
	return n, nil // if the time is up, the last of it leaves without us
}

// awaitCredit waits until something may be sent, if there is something to send.
func (s *Stream) awaitCredit(n int) error {
	for {
		expired := s.wdl.wait()
		s.mu.Lock()
		err, ready := s.unwritable(), n == 0 || s.credit > 0
		s.mu.Unlock()
		switch {
		case err != nil:
			return err
		case isClosed(s.c.done):
			return s.c.failure()
		case isClosed(expired):
			return os.ErrDeadlineExceeded
		case ready:
			return nil
		}
		select {
		case <-s.writable:
		case <-expired:
		case <-s.c.done:
		}
	}
}

// unwritable is why nothing may be written. The lock is held.
func (s *Stream) unwritable() error {
	if s.reset != nil {
		return s.reset
	}
	if s.finDue || s.finSent {
		return errShut
	}
	return nil
}
