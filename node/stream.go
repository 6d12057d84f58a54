package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	local "peermesh/node/internal/pipe"
	"peermesh/node/internal/shm"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	manet "github.com/multiformats/go-multiaddr/net"
)

// A Stream is a libp2p stream tied to a context: when the context ends, the
// stream is reset with the code of the cause, and every blocked or later call
// returns that cause. One goroutine may read while another writes.
type Stream struct {
	raw  network.Stream
	tidy *group // of the node: what still has to be told to the other side

	lend   sync.Once
	lender local.Lender // nil if there is none

	mu    sync.Mutex // guards the rest
	ctx   context.Context
	stop  func() bool // unties the stream from ctx
	cause error       // of Reset
}

func newStream(ctx context.Context, raw network.Stream, tidy *group) *Stream {
	s := &Stream{raw: raw, tidy: tidy}
	s.Bind(ctx)
	return s
}

// Bind ties the stream to ctx in place of the context it was tied to.
func (s *Stream) Bind(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil && !s.stop() && s.cause == nil {
		s.cause = context.Cause(s.ctx) // too late: that context has ended
	}
	s.ctx = ctx
	s.stop = context.AfterFunc(ctx, func() { s.abort(context.Cause(ctx)) })
}

// Peer is the authenticated peer at the other end.
func (s *Stream) Peer() peer.ID { return s.raw.Conn().RemotePeer() }

// Read fails with io.EOF, in the sense of errors.Is, only if the other side has
// ended its direction: never because the connection broke.
func (s *Stream) Read(p []byte) (int, error) {
	n, err := s.raw.Read(p)
	return n, s.explain(err)
}

// Lends reports whether Lend works: on a stream that the other side has opened, and
// that goes through memory, shared or the process's own.
func (s *Stream) Lends() bool {
	s.lend.Do(func() {
		// Others might take a read of no bytes for one that waits.
		if k := s.raw.Conn().ConnState().Transport; s.raw.Stat().Direction == network.DirInbound && (k == Shm || k == Memory) {
			s.lender = local.Find(s.raw)
		}
	})
	return s.lender != nil
}

// Lend is Read without a copy, if Lends. It waits for bytes, lends at most limit of
// them in one piece to use, and counts as read as many as use returns. use must
// neither keep nor change them, and must be quick: the writer waits for the room.
func (s *Stream) Lend(limit int, use func(p []byte) (int, error)) (int, error) {
	n, err := s.lender.Lend(limit, use)
	return n, s.explain(err)
}

// Ahead is how many bytes, written before the other side has read any, a stream takes
// without waiting for it: as far as that is certain.
func (s *Stream) Ahead() int64 {
	if s.raw.Conn().ConnState().Transport == Shm {
		return shm.RingSize
	}
	return 0
}

// SameHost reports whether the connection stays on this machine, as far as one can tell:
// through memory, or over a loopback address, which may as well be a tunnel's end.
func (s *Stream) SameHost() (sure, likely bool) {
	c := s.raw.Conn()
	k := c.ConnState().Transport
	sure = k == Shm || k == Memory
	return sure, sure || manet.IsIPLoopback(c.RemoteMultiaddr())
}

// Write returns when p may be used again, which is before it has arrived.
func (s *Stream) Write(p []byte) (int, error) {
	n, err := s.raw.Write(p)
	return n, s.explain(err)
}

// CloseWrite tells the other side that nothing more will come.
func (s *Stream) CloseWrite() error { return s.explain(s.raw.CloseWrite()) }

// Close is the end of a stream that went well. It does not wait: what was
// written is delivered as long as the connection lives.
func (s *Stream) Close() {
	s.untie()
	s.later(func() { _ = s.raw.Close() }) // fails only on a stream that is gone already
}

// Reset breaks the stream, tells the other side the code of err, and lets
// blocked and later calls on this side return err. It does not wait.
func (s *Stream) Reset(err error) {
	s.untie()
	s.mu.Lock()
	if s.cause == nil {
		s.cause = err
	}
	s.mu.Unlock()
	s.abort(err)
}

// abort frees blocked calls before it tells the other side, because the telling
// waits behind all that is queued on a connection that may be stuck.
func (s *Stream) abort(err error) {
	s.SetDeadline(past)
	s.later(func() { _ = s.raw.ResetWithError(CodeOf(err)) })
}

// later runs f beside the caller, but never beyond the node's Close.
func (s *Stream) later(f func()) {
	if !s.tidy.enter() {
		f() // the connections are closed: nothing blocks
		return
	}
	go func() {
		defer s.tidy.leave()
		f()
	}()
}

func (s *Stream) untie() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// SetDeadline bounds reads and writes. One that ran into the bound returns an
// error for which IsTimeout holds. The zero time lifts the bound.
func (s *Stream) SetDeadline(t time.Time) {
	s.SetReadDeadline(t)
	s.SetWriteDeadline(t)
}

// SetReadDeadline is SetDeadline for reads.
func (s *Stream) SetReadDeadline(t time.Time) {
	_ = s.raw.SetReadDeadline(t) // fails only on a stream that is gone: the read will say so
}

// SetWriteDeadline is SetDeadline for writes.
func (s *Stream) SetWriteDeadline(t time.Time) {
	_ = s.raw.SetWriteDeadline(t) // likewise
}

// IsTimeout tells a deadline that passed from a stream that broke.
func IsTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// explain gives an error of the stream its reason: the cause of a reset of our
// own comes first, because what the calls return is only its echo.
func (s *Stream) explain(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	s.mu.Lock()
	ctx, cause := s.ctx, s.cause
	s.mu.Unlock()
	if cause != nil {
		return cause
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var reset *network.StreamError
	if errors.As(err, &reset) && reset.Remote {
		return &ResetError{Peer: s.Peer(), Code: reset.ErrorCode}
	}
	if errors.Is(err, io.EOF) {
		// yamux says so of a connection that ended, but a stream that was cut short
		// must not look like one that was complete.
		return fmt.Errorf("node: stream with %s: connection ended: %v", s.Peer(), err)
	}
	return fmt.Errorf("node: stream with %s: %w", s.Peer(), err)
}
