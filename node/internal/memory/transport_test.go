package memory

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/node/internal/pipe"
	"peermesh/node/internal/pipe/pipetest"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/multiformats/go-multiaddr"
)

// dialled connects two transports.
func dialled(t testing.TB, a, b *Transport) (c, d transport.CapableConn) {
	t.Helper()
	l, err := b.Listen(nobody)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = a.Dial(t.Context(), l.Multiaddr(), b.id); err != nil {
		t.Fatal(err)
	}
	if d, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), d.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	})
	return c, d
}

// What every transport of ours owes its streams.
func TestContract(t *testing.T) {
	connect := func(t testing.TB, near, far network.ResourceManager) (c, d transport.CapableConn) {
		a, b := transports(t)
		a.limits, b.limits = near, far
		return dialled(t, a, b)
	}
	pipetest.Run(t, connect, pipetest.Shape{Window: window, Piece: long / 2, Backlog: pipe.Backlog})
}

// A dial that leads nowhere, or not to whom it should, is refused and leaves nothing.
func TestDialRefused(t *testing.T) {
	other := []byte("a pre-shared key of thirty-two b")
	for name, c := range map[string]struct {
		spoil func(a, b *Transport, near, far *pipetest.Account)
		want  string
	}{
		"another network":        {func(a, _ *Transport, _, _ *pipetest.Account) { a.secret = other }, "private networks"},
		"a gater":                {func(_, b *Transport, _, _ *pipetest.Account) { b.gate = pipetest.Gate{} }, "gater"},
		"a gater that knows who": {func(_, b *Transport, _, _ *pipetest.Account) { b.gate = pipetest.Gate{Accept: true} }, "gater"},
		"no room here":           {func(_, _ *Transport, near, _ *pipetest.Account) { near.Full.Store(true) }, network.ErrResourceLimitExceeded.Error()},
		"no room there":          {func(_, _ *Transport, _, far *pipetest.Account) { far.Full.Store(true) }, "refused by the other side"},
		"another peer":           {func(a, b *Transport, _, _ *pipetest.Account) { b.id = a.id }, "peer id mismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := transports(t)
			near, far := new(pipetest.Account), new(pipetest.Account)
			a.limits, b.limits = near, far
			l, err := b.Listen(nobody)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			id := b.id
			c.spoil(a, b, near, far)
			if _, err := a.Dial(t.Context(), l.Multiaddr(), id); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if near.Open()+far.Open() != 0 {
				t.Errorf("%d and %d connections are left", near.Open(), far.Open())
			}
		})
	}
	a, b := transports(t)
	if _, err := a.Dial(t.Context(), address(1<<40), b.id); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Dial(ended, address(1<<40), b.id); !errors.Is(err, context.Canceled) {
		t.Errorf("too late: %v", err)
	}
	if _, err := a.Dial(t.Context(), multiaddr.StringCast("/ip4/127.0.0.1/tcp/1"), b.id); err == nil {
		t.Error("dialled TCP")
	}
}

// A dialler waits for a listener that is behind, as long as it may, and hears of its end.
func TestDialWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := transports(t)
		near, far := new(pipetest.Account), new(pipetest.Account)
		a.limits, b.limits = near, far
		l, err := b.Listen(nobody)
		if err != nil {
			t.Fatal(err)
		}
		dial := func(ctx context.Context) error { _, err := a.Dial(ctx, l.Multiaddr(), b.id); return err }
		for range acceptQueue {
			if err := dial(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := dial(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		waits := make(chan error, 1)
		go func() { waits <- dial(t.Context()) }()
		synctest.Wait()
		_ = l.Close() // does not fail
		if err := <-waits; err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%v", err)
		}
		if near.Open()+far.Open() != 0 {
			t.Errorf("%d and %d connections are left of a listener that has closed", near.Open(), far.Open())
		}
	})
}

// A number is one listener's at a time, and free again after it.
func TestListen(t *testing.T) {
	a, b := transports(t)
	l, err := a.Listen(nobody)
	if err != nil {
		t.Fatal(err)
	}
	at := l.Multiaddr()
	if l.Addr().String() != at.String() || !a.CanDial(at) || a.CanDial(nobody) || a.CanDial(multiaddr.StringCast("/ip4/127.0.0.1/tcp/1")) {
		t.Errorf("listens on %v, %v", l.Addr(), at)
	}
	if _, err := b.Listen(at); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second listener: %v", err)
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); !errors.Is(err, transport.ErrListenerClosed) {
		t.Errorf("accept after Close: %v", err)
	}
	again, err := b.Listen(at)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close() // does not fail
	if _, err := a.Listen(multiaddr.StringCast("/ip4/127.0.0.1/tcp/0")); err == nil {
		t.Error("listens on TCP")
	}
}

// A side without memory refuses a stream, and whoever opens it keeps nothing.
func TestStreamRefused(t *testing.T) {
	a, b := transports(t)
	near, far := new(pipetest.Account), new(pipetest.Account)
	a.limits, b.limits = near, far
	c, _ := dialled(t, a, b)
	far.Poor.Store(true)
	if _, err := c.OpenStream(t.Context()); !errors.Is(err, network.ErrResourceLimitExceeded) {
		t.Errorf("%v", err)
	}
	if near.Held()+far.Held() != 0 {
		t.Errorf("%d and %d bytes are held", near.Held(), far.Held())
	}
}

// A reader that has what is lent to it at work keeps the writer, whatever the deadline:
// nobody looks at what a write that has returned was given.
func TestLentUntilUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := streams(t)
		_ = near.SetWriteDeadline(time.Now().Add(time.Second)) // does not fail
		begun := time.Now()
		var wrote time.Duration
		done := make(chan struct{})
		go func() {
			defer close(done)
			if n, err := near.Write(make([]byte, long)); n != 5 || err == nil {
				t.Errorf("%d, %v", n, err)
			}
			wrote = time.Since(begun)
		}()
		if n, err := far.(*Stream).Lend(long, func(p []byte) (int, error) {
			time.Sleep(time.Hour)
			return 5, nil
		}); n != 5 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		<-done
		if wrote != time.Hour {
			t.Errorf("returned after %v", wrote)
		}
	})
}
