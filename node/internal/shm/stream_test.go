//go:build linux && (amd64 || arm64)

package shm

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"peermesh/node/internal/pipe"

	"github.com/libp2p/go-libp2p/core/network"
)

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

// A stream carries RingSize bytes that nobody reads, and not one more.
func TestBackpressure(t *testing.T) {
	near, far := streams(t)
	if n, err := near.Write(make([]byte, RingSize)); n != RingSize || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if err := near.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := near.Write([]byte{1}); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := near.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(far, make([]byte, RingSize)); err != nil {
		t.Error(err)
	}
	if n, err := near.Write([]byte{1}); n != 1 || err != nil {
		t.Errorf("after the deadline was lifted: %d, %v", n, err)
	}
}

func TestReadDeadline(t *testing.T) {
	near, far := streams(t)
	for _, when := range []time.Time{time.Now().Add(20 * time.Millisecond), time.Unix(1, 0)} {
		if err := far.SetReadDeadline(when); err != nil {
			t.Fatal(err)
		}
		if _, err := far.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v", err)
		}
	}
	done := make(chan error, 1)
	if err := far.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := far.Read(make([]byte, 1))
		done <- err
	}()
	if err := far.SetDeadline(time.Unix(1, 0)); err != nil { // frees it, asleep or not
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if err := far.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := near.Write([]byte{7}); err != nil {
		t.Fatal(err)
	}
	if n, err := far.Read(make([]byte, 9)); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// Each half closes by itself.
func TestHalfClose(t *testing.T) {
	near, far := streams(t)
	if _, err := near.Write([]byte("last")); err != nil {
		t.Fatal(err)
	}
	if err := near.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := near.Write([]byte{1}); !errors.Is(err, pipe.ErrClosed) {
		t.Errorf("write after CloseWrite: %v", err)
	}
	if got, err := io.ReadAll(far); string(got) != "last" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := far.Write([]byte("answer")); err != nil {
		t.Errorf("the other half: %v", err)
	}
	if err := near.CloseRead(); err != nil {
		t.Fatal(err)
	}
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, pipe.ErrClosed) {
		t.Errorf("read after CloseRead: %v", err)
	}
	if _, err := far.Write(make([]byte, 2*RingSize)); !errors.Is(err, pipe.ErrStopped) {
		t.Errorf("write to a reader that has gone: %v", err)
	}
}

// What was written before Close arrives, and is followed by the end.
func TestCloseDelivers(t *testing.T) {
	near, far := streams(t)
	if _, err := near.Write([]byte("all of it")); err != nil {
		t.Fatal(err)
	}
	if err := near.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(far); string(got) != "all of it" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := near.Reset(); err != nil { // of a closed stream: nothing
		t.Error(err)
	}
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, pipe.ErrClosed) {
		t.Errorf("%v", err)
	}
}

func TestReset(t *testing.T) {
	const code = 0x504d0003
	near, far := streams(t)
	calls := make(chan error, 3)
	go func() { _, err := far.Read(make([]byte, 1)); calls <- err }()
	go func() { _, err := far.Write(make([]byte, 2*RingSize)); calls <- err }()
	if err := near.ResetWithError(code); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-calls; !errors.Is(err, &network.StreamError{ErrorCode: code, Remote: true}) {
			t.Errorf("at the other side: %v", err)
		}
	}
	if _, err := near.Write([]byte{1}); !errors.Is(err, &network.StreamError{ErrorCode: code}) {
		t.Errorf("at this side: %v", err)
	}
}

// Calls under way return when the stream is closed or reset beside them.
func TestCloseFreesCalls(t *testing.T) {
	for name, end := range map[string]func(*Stream) error{"close": (*Stream).Close, "reset": (*Stream).Reset} {
		near, _ := streams(t)
		calls := make(chan error, 2)
		go func() { _, err := near.Read(make([]byte, 1)); calls <- err }()
		go func() { _, err := near.Write(make([]byte, 2*RingSize)); calls <- err }()
		if err := end(near); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := <-calls; err == nil || errors.Is(err, io.EOF) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestLend(t *testing.T) {
	near, far := streams(t)
	if _, err := near.Write([]byte("abcdef")); err != nil {
		t.Fatal(err)
	}
	l := pipe.Find(far)
	if l == nil {
		t.Fatal("nothing lends")
	}
	seen := ""
	stop := errors.New("enough")
	n, err := l.Lend(4, func(p []byte) (int, error) {
		seen += string(p)
		return 2, stop
	})
	if n != 2 || !errors.Is(err, stop) || seen != "abcd" {
		t.Errorf("%d, %v: %q", n, err, seen)
	}
	rest := make([]byte, 9)
	if n, err := far.Read(rest); string(rest[:n]) != "cdef" || err != nil {
		t.Errorf("%q, %v", rest[:n], err)
	}
	if pipe.Find(bytes.NewReader(nil)) != nil {
		t.Error("found in what is no stream of ours")
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

// A closed connection takes its streams with it, and tells the code.
func TestConnClose(t *testing.T) {
	c, d := conns(t)
	near, far := stream(t, c, d)
	read := make(chan error, 1)
	go func() { _, err := far.Read(make([]byte, 1)); read <- err }()
	if err := c.CloseWithError(42); err != nil {
		t.Fatal(err)
	}
	for who, err := range map[string]error{
		"the other side's read": <-read, "its accept": second(d.AcceptStream()), "its open": second(d.OpenStream(t.Context()))} {
		if !errors.Is(err, &network.ConnError{ErrorCode: 42, Remote: true}) {
			t.Errorf("%s: %v", who, err)
		}
	}
	for who, err := range map[string]error{
		"read": second(near.Read(make([]byte, 1))), "write": second(near.Write([]byte{1})), "open": second(c.OpenStream(t.Context()))} {
		if !errors.Is(err, &network.ConnError{ErrorCode: 42}) {
			t.Errorf("%s: %v", who, err)
		}
	}
	if !c.IsClosed() || !d.IsClosed() || c.mem.refs.Load() != 0 {
		t.Errorf("closed %v, %v; %d uses of the memory", c.IsClosed(), d.IsClosed(), c.mem.refs.Load())
	}
}

func second[T any](_ T, err error) error { return err }

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
