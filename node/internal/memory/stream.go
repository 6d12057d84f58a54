package memory

import (
	"sync"
	"time"

	"peermesh/node/internal/pipe"

	"github.com/libp2p/go-libp2p/core/network"
)

// A Stream is one end of a stream.
type Stream struct {
	conn    *conn
	in, out *half

	reading, writing sync.Mutex // one call at a time each way
}

var (
	_ network.MuxedStream = (*Stream)(nil)
	_ pipe.Lender         = (*Stream)(nil)
)

// Read reads what is there, at least one byte.
func (s *Stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		pipe.Asked(p, s)
		return 0, nil
	}
	return s.Lend(len(p), func(b []byte) (int, error) { return copy(p, b), nil })
}

// Lend reads without a copy: see pipe.Lender.
func (s *Stream) Lend(limit int, use func(p []byte) (int, error)) (int, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	return s.in.take(limit, use)
}

// Write writes all of p unless it fails.
func (s *Stream) Write(p []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.out.put(p)
}

// CloseWrite lets the other side read to the end of what was written.
func (s *Stream) CloseWrite() error {
	s.out.change(func() { s.out.fin, s.out.writerClosed = true, true })
	return nil
}

// CloseRead lets reads fail here, and writes at the other side.
func (s *Stream) CloseRead() error {
	s.in.change(func() { s.in.stop, s.in.readerClosed = true, true })
	return nil
}

// Close closes both directions. What was written is delivered.
func (s *Stream) Close() error {
	_ = s.CloseWrite() // neither fails
	_ = s.CloseRead()
	s.conn.forget(s)
	return nil
}

// Reset is ResetWithError without a code.
func (s *Stream) Reset() error { return s.ResetWithError(network.StreamNoError) }

// ResetWithError breaks the stream on both sides, for a stream that is closed no
// more.
func (s *Stream) ResetWithError(code network.StreamErrorCode) error {
	if s.conn.forget(s) {
		s.fail(pipe.Local(code), pipe.Remote(code))
	}
	return nil
}

// fail breaks both halves, with the error for this end and for the other.
func (s *Stream) fail(here, there error) {
	s.in.fail(here, there)
	s.out.fail(there, here)
}

// SetDeadline sets both deadlines.
func (s *Stream) SetDeadline(t time.Time) error {
	s.in.read.Set(t)
	s.out.written.Set(t)
	return nil
}

// SetReadDeadline bounds reads.
func (s *Stream) SetReadDeadline(t time.Time) error {
	s.in.read.Set(t)
	return nil
}

// SetWriteDeadline bounds writes.
func (s *Stream) SetWriteDeadline(t time.Time) error {
	s.out.written.Set(t)
	return nil
}

// end breaks this end's calls; the other end's learn of it from their own
// connection.
func (s *Stream) end(err error) {
	s.in.fail(err, nil)
	s.out.fail(nil, err)
}

// never lifts a deadline.
var never time.Time
