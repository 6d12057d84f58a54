package simlink

import (
	"errors"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// CloseWrite ends this direction after what was written.
func (s *stream) CloseWrite() error {
	defer s.lock().Unlock()
	if s.writeErr != nil {
		return s.writeErr
	}
	s.closeWrite()
	return nil
}

func (s *stream) closeWrite() {
	if !s.ended {
		s.ended = true
		s.writable.Broadcast()
		s.dirty()
	}
}

// CloseRead throws away what still comes.
func (s *stream) CloseRead() error {
	defer s.lock().Unlock()
	s.closeRead()
	return nil
}

func (s *stream) closeRead() {
	s.deaf = true
	for _, p := range s.in {
		s.give(len(p) - s.read)
		s.read = 0
	}
	s.in = nil
	s.readable.Broadcast()
	s.forget()
}

// Close is CloseWrite and CloseRead.
func (s *stream) Close() error {
	defer s.lock().Unlock()
	if s.writeErr == nil {
		s.closeWrite()
	}
	s.closeRead()
	return nil
}

// Reset is ResetWithError without a code.
func (s *stream) Reset() error { return s.ResetWithError(network.StreamNoError) }

// ResetWithError ends both directions on both sides. What was not sent yet is not
// sent any more.
func (s *stream) ResetWithError(code network.StreamErrorCode) error {
	defer s.lock().Unlock()
	s.abort(code)
	return nil
}

// SetDeadline bounds reads and writes.
func (s *stream) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetReadDeadline bounds reads, also one that waits already.
func (s *stream) SetReadDeadline(t time.Time) error {
	defer s.lock().Unlock()
	s.readBy.set(t, &s.readable)
	return nil
}

// SetWriteDeadline bounds writes, also one that waits already.
func (s *stream) SetWriteDeadline(t time.Time) error {
	defer s.lock().Unlock()
	s.writeBy.set(t, &s.writable)
	return nil
}

// A deadline wakes those who wait on a condition when it passes.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

// set moves the deadline. The timer serves for the next one too: a stream has several
// while it opens.
func (d *deadline) set(t time.Time, c *sync.Cond) {
	d.at = t
	left := time.Until(t)
	switch {
	case t.IsZero() || left <= 0:
		if d.timer != nil {
			d.timer.Stop()
		}
		c.Broadcast()
	case d.timer == nil:
		d.timer = time.AfterFunc(left, func() {
			c.L.Lock()
			defer c.L.Unlock()
			c.Broadcast()
		})
	default:
		d.timer.Reset(left)
	}
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }
