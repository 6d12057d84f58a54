//go:build linux && (amd64 || arm64)

package shm

import (
	"bytes"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"peermesh/node/internal/pipe/pipetest"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/transport"
)

// What every transport of ours owes its streams.
func TestContract(t *testing.T) {
	connected := func(t testing.TB, near, far network.ResourceManager) (c, d transport.CapableConn) {
		a, b := transports(t)
		a.limits, b.limits = near, far
		return connect(t, a, b)
	}
	pipetest.Run(t, connected, pipetest.Shape{Window: RingSize, Piece: RingSize, Backlog: StreamsEach})
}

// Bytes of every length come out as they went in, around the end of the ring too.
func TestBytes(t *testing.T) {
	near, far := streams(t)
	r := rand.New(rand.NewPCG(1, 2))
	want := make([]byte, 5*RingSize)
	for i := range want {
		want[i] = byte(r.Uint32())
	}
	sent := make(chan error, 1)
	go func() {
		for rest := want; len(rest) > 0; {
			n := min(len(rest), 1+int(r.Uint32N(3*quantum)))
			if k, err := near.Write(rest[:n]); k != n || err != nil {
				sent <- err
				return
			}
			rest = rest[n:]
		}
		sent <- near.CloseWrite()
	}()
	got, err := io.ReadAll(far)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// Slots come back: far more streams than slots, one after the other.
func TestSlotsComeBack(t *testing.T) {
	c, d := conns(t)
	for range StreamsEach + 100 {
		near, far := stream(t, c, d)
		if _, err := near.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		if _, err := far.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		_ = far.Close()  // neither
		_ = near.Close() // fails
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.live) > 0 || c.fresh > StreamsEach {
		t.Errorf("%d streams live, %d slots used", len(c.live), c.fresh)
	}
}

// Of a connection that is closed nothing is left.
func TestConnCloseUnmaps(t *testing.T) {
	c, d := conns(t)
	near, _ := stream(t, c, d)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	_, _ = near.Read(make([]byte, 1)) // the contract says what it finds
	if c.mem.refs.Load() != 0 {
		t.Errorf("%d uses of the memory", c.mem.refs.Load())
	}
}

// A stream that is written and read at once, as soon as it is open, is met by whichever
// call sees the other side first; the other may have looked just before.
func TestMeeting(t *testing.T) {
	c, d := conns(t)
	const streams, callers = 300, 8
	for range streams {
		near, far := stream(t, c, d)
		far.mine.flags.Store(uint64(near.gen-1)<<32 | flagOpen) // as if it had not seen the stream yet
		var there atomic.Bool
		var calls sync.WaitGroup
		for range callers {
			calls.Go(func() {
				for begun := false; ; begun = there.Load() { // before it looks again
					_, flags, err := near.met()
					switch {
					case err != nil:
						t.Error(err)
					case flags == 0 && begun:
						t.Error("not met, though it is there")
					case flags == 0:
						continue
					}
					return
				}
			})
		}
		runtime.Gosched()
		far.mine.flags.Store(uint64(near.gen)<<32 | flagOpen)
		there.Store(true)
		calls.Wait()
		_, _ = near.Close(), far.Close()
	}
}
