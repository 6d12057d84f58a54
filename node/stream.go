package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// A Stream is a libp2p stream tied to a context: when the context ends, the
// stream is reset with the code of the cause, and every blocked or later call
// returns that cause. One goroutine may read while another writes.
type Stream struct {
	raw network.Stream

	mu   sync.Mutex // guards the tie
	ctx  context.Context
	stop func() bool
}

func newStream(ctx context.Context, raw network.Stream) *Stream {
	s := &Stream{raw: raw}
	s.Bind(ctx)
	return s
}

// Bind ties the stream to ctx in place of the context it was tied to.
func (s *Stream) Bind(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop()
	}
	s.ctx = ctx
	s.stop = context.AfterFunc(ctx, func() { s.reset(CodeOf(context.Cause(ctx))) })
}

// Peer is the authenticated peer at the other end.
func (s *Stream) Peer() peer.ID { return s.raw.Conn().RemotePeer() }

func (s *Stream) Read(p []byte) (int, error) {
	n, err := s.raw.Read(p)
	return n, s.explain(err)
}

func (s *Stream) Write(p []byte) (int, error) {
	n, err := s.raw.Write(p)
	return n, s.explain(err)
}

// CloseWrite tells the other side that nothing more will come.
func (s *Stream) CloseWrite() error { return s.explain(s.raw.CloseWrite()) }

// Close is the end of a stream that went well. What was written is still
// delivered, as long as the connection lives.
func (s *Stream) Close() error {
	s.untie()
	return s.explain(s.raw.Close())
}

// Reset breaks the stream, and tells the other side the code of err.
func (s *Stream) Reset(err error) {
	s.untie()
	s.reset(CodeOf(err))
}

func (s *Stream) reset(code network.StreamErrorCode) {
	_ = s.raw.ResetWithError(code) // fails only on a stream that is gone already
}

func (s *Stream) untie() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
}

// SetDeadline bounds reads and writes. One that ran into the bound returns an
// error for which IsTimeout holds. The zero time lifts the bound.
func (s *Stream) SetDeadline(t time.Time) { s.SetReadDeadline(t); s.SetWriteDeadline(t) }

// SetReadDeadline is SetDeadline for reads.
func (s *Stream) SetReadDeadline(t time.Time) {
	_ = s.raw.SetReadDeadline(t) // fails only on a stream that is gone: the read will say so
}

// SetWriteDeadline is SetDeadline for writes.
func (s *Stream) SetWriteDeadline(t time.Time) { _ = s.raw.SetWriteDeadline(t) }

// IsTimeout tells a deadline that passed from a stream that broke.
func IsTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// explain gives an error of the stream its reason: the cause of the context
// comes first, because a reset is only its echo.
func (s *Stream) explain(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	s.mu.Lock()
	ctx := s.ctx
	s.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var reset *network.StreamError
	if errors.As(err, &reset) && reset.Remote {
		return &ResetError{Peer: s.Peer(), Code: reset.ErrorCode}
	}
	return fmt.Errorf("node: stream with %s: %w", s.Peer(), err)
}
