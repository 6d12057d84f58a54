package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// pipe is a stream between two nodes: one end, and the other through a handler.
func pipe(t *testing.T, a, b context.Context) (near, far *Stream) {
	t.Helper()
	n, m := start(t, Config{}), start(t, Config{})
	got := make(chan *Stream, 1)
	stop, err := m.Handle(b, "/pipe", func(s *Stream) {
		if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
			t.Error(err)
		}
		got <- s
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if err := n.Connect(t.Context(), info(t, m)); err != nil {
		t.Fatal(err)
	}
	if near, err = n.Open(a, m.ID(), "/pipe"); err != nil {
		t.Fatal(err)
	}
	if _, err := near.Write([]byte{0}); err != nil {
		t.Fatal(err)
	}
	return near, <-got
}

func TestStreamEndsWithItsContext(t *testing.T) {
	boom := fmt.Errorf("boom: %w", ErrViolation)
	ctx, cancel := context.WithCancelCause(t.Context())
	near, far := pipe(t, ctx, t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(boom) })
	if _, err := near.Read(make([]byte, 1)); err != boom {
		t.Errorf("blocked read: %v", err)
	}
	if _, err := near.Write([]byte{0}); err != boom {
		t.Errorf("later write: %v", err)
	}
	_, err := far.Read(make([]byte, 1))
	var reset *ResetError
	if !errors.As(err, &reset) || reset.Code != CodeViolation || reset.Peer != far.Peer() || !errors.Is(err, ErrViolation) {
		t.Errorf("the other side: %v", err)
	}
}

func TestStreamReset(t *testing.T) {
	boom := errors.New("boom")
	near, far := pipe(t, t.Context(), t.Context())
	time.AfterFunc(10*time.Millisecond, func() { near.Reset(boom) })
	if _, err := near.Read(make([]byte, 1)); err != boom {
		t.Errorf("blocked read: %v", err)
	}
	near.Reset(errors.New("later"))
	if _, err := near.Read(make([]byte, 1)); err != boom {
		t.Errorf("after a second reset: %v", err)
	}
	_, err := far.Read(make([]byte, 1))
	var reset *ResetError
	if !errors.As(err, &reset) || reset.Code != CodeFailed || errors.Unwrap(err) != nil {
		t.Errorf("the other side: %v", err)
	}
}

func TestStreamBind(t *testing.T) {
	first, cancel := context.WithCancel(t.Context())
	near, far := pipe(t, first, t.Context())
	second, cancel2 := context.WithCancel(t.Context())
	near.Bind(second)
	cancel()
	if _, err := near.Write([]byte("x")); err != nil {
		t.Errorf("write after the old context: %v", err)
	}
	if _, err := far.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	cancel2()
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("read after the new context: %v", err)
	}
	if _, err := far.Read(make([]byte, 1)); !errors.Is(err, ErrGaveUp) {
		t.Errorf("the other side: %v", err)
	}
}

func TestStreamDeadline(t *testing.T) {
	near, far := pipe(t, t.Context(), t.Context())
	// The first read also takes in what the two sides speak, and if that is
	// interrupted it stays so.
	if _, err := far.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := near.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	near.SetDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := near.Read(make([]byte, 1)); !IsTimeout(err) {
		t.Errorf("read: %v", err)
	}
	near.SetDeadline(time.Time{})
	if _, err := far.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := near.Read(make([]byte, 1)); err != nil {
		t.Errorf("after the deadline was lifted: %v", err)
	}
	if IsTimeout(io.EOF) || IsTimeout(nil) {
		t.Error("no time-out taken for one")
	}
	near.Close()
	if _, err := far.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after close: %v", err)
	}
	far.Reset(ErrClosed)
}

func TestCodes(t *testing.T) {
	for _, c := range codes {
		if got := CodeOf(fmt.Errorf("wrapped: %w", c.err)); got != c.code {
			t.Errorf("%v: code %#x, want %#x", c.err, got, c.code)
		}
		if err := ErrorOf(c.code); CodeOf(err) != c.code {
			t.Errorf("code %#x: %v", c.code, err)
		}
	}
	if CodeOf(errors.New("other")) != CodeFailed || ErrorOf(CodeFailed) != nil || ErrorOf(7) != nil {
		t.Error("an unknown error has a meaning")
	}
	if ErrorOf(network.StreamResourceLimitExceeded) != ErrLimit {
		t.Error("libp2p's limit is none of ours")
	}
	if CodeFailed != 0x504d0000 || CodeGaveUp != 0x504d0001 || CodeViolation != 0x504d0002 ||
		CodeLimit != 0x504d0003 || CodeStale != 0x504d0004 || CodeClosed != 0x504d0005 {
		t.Error("codes were renumbered")
	}
}

// A connection that breaks is no end of a stream, whatever the muxer says.
func TestBrokenConnectionIsNoEnd(t *testing.T) {
	for _, listen := range []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"} {
		a, b := start(t, Config{Listen: []string{listen}}), start(t, Config{Listen: []string{listen}})
		got := make(chan *Stream, 1)
		stop, err := b.Handle(t.Context(), "/pipe", func(s *Stream) { got <- s })
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		if err := a.Connect(t.Context(), info(t, b)); err != nil {
			t.Fatal(err)
		}
		near, err := a.Open(t.Context(), b.ID(), "/pipe")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := near.Write([]byte{0}); err != nil {
			t.Fatal(err)
		}
		far := <-got
		if err := a.Host().Network().ClosePeer(b.ID()); err != nil {
			t.Fatal(err)
		}
		for _, s := range []*Stream{near, far} {
			n, err := 1, error(nil)
			for n > 0 && err == nil { // the byte may have arrived before
				n, err = s.Read(make([]byte, 1))
			}
			if err == nil || errors.Is(err, io.EOF) || IsTimeout(err) {
				t.Errorf("%s: after the connection broke: %v", listen, err)
			}
			s.Reset(ErrClosed)
		}
	}
}

// Whoever binds a stream to a new context after the old one has ended gets the
// old one's cause, not a time-out from nowhere.
func TestBindTooLate(t *testing.T) {
	boom := errors.New("boom")
	ctx, cancel := context.WithCancelCause(t.Context())
	near, _ := pipe(t, ctx, t.Context())
	cancel(boom)
	near.Bind(t.Context())
	if _, err := near.Read(make([]byte, 1)); err != boom {
		t.Errorf("read: %v", err)
	}
}
