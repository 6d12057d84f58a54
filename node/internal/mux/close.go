package mux

import (
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// CloseWrite tells the peer that nothing more will come. What was written arrives
// before that.
func (s *Stream) CloseWrite() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reset != nil {
		return s.reset
	}
	if !s.finDue && !s.finSent {
		s.finDue = true
		s.tell()
		poke(s.writable)
	}
	return nil
}

// CloseRead ends reading. What still comes is dropped; the peer can go on writing.
func (s *Stream) CloseRead() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reset == nil && !s.shut {
		s.shut = true
		s.take(s.in.size)
		s.in.drop()
		poke(s.readable)
	}
	return nil
}

// Close is CloseWrite and CloseRead. It waits for nothing.
func (s *Stream) Close() error {
	_ = s.CloseRead()
	err := s.CloseWrite()
	if s.broken() {
		return nil // it is as closed as can be
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.linger == nil && !s.gone && !s.c.IsClosed() {
		s.linger = time.AfterFunc(lingering, func() { _ = s.Reset() })
	}
	return err
}

func (s *Stream) broken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reset != nil
}

// Reset is ResetWithError(0).
func (s *Stream) Reset() error { return s.ResetWithError(0) }

// ResetWithError breaks the stream on both sides. Calls on it fail from now on.
func (s *Stream) ResetWithError(code network.StreamErrorCode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := s.reset == nil && !s.gone // else the peer knows
	s.breakOff(&network.StreamError{ErrorCode: code})
	if news {
		s.resetDue, s.code = true, uint32(code)
		s.tell()
	}
	return nil
}

// breakOff fails calls from now on. Only the first reason counts. The lock is held.
func (s *Stream) breakOff(err error) {
	if s.reset == nil {
		s.reset = err
		s.in.drop()
		s.free()
	}
	if s.linger != nil {
		s.linger.Stop()
	}
	poke(s.readable)
	poke(s.writable)
}

// SetDeadline bounds reads and writes; the zero time lifts the bound.
func (s *Stream) SetDeadline(t time.Time) error {
	_ = s.SetReadDeadline(t)
	return s.SetWriteDeadline(t)
}

// SetReadDeadline bounds reads, those that wait included.
func (s *Stream) SetReadDeadline(t time.Time) error {
	s.rdl.set(t)
	poke(s.readable)
	return nil
}

// SetWriteDeadline bounds writes, those that wait included.
func (s *Stream) SetWriteDeadline(t time.Time) error {
	s.wdl.set(t)
	poke(s.writable)
	return s.c.hurry(s)
}
