package pipetest

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"peermesh/node/internal/pipe"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/transport"
)

// Connect makes a connection between two hosts with those limits, for as long as a test
// takes.
type Connect func(t testing.TB, near, far network.ResourceManager) (a, b transport.CapableConn)

// A Shape is what a transport bounds.
type Shape struct {
	Window  int // bytes that a stream carries ahead of its reader, and not one more
	Piece   int // in writes of so many: a divisor of Window
	Backlog int // streams that one side may open while the other accepts none
}

// Run holds connections to the contract.
func Run(t *testing.T, connect Connect, shape Shape) {
	streams := func(t *testing.T) (near, far network.MuxedStream) {
		a, b := connect(t, &network.NullResourceManager{}, &network.NullResourceManager{})
		return stream(t, a, b)
	}
	t.Run("Backpressure", func(t *testing.T) { near, far := streams(t); backpressure(t, near, far, shape) })
	for name, f := range map[string]func(t *testing.T, near, far network.MuxedStream){
		"ReadDeadline": readDeadline, "HalfClose": halfClose, "CloseDelivers": closeDelivers, "Reset": reset, "Lend": lend,
	} {
		t.Run(name, func(t *testing.T) { near, far := streams(t); f(t, near, far) })
	}
	for name, end := range map[string]func(network.MuxedStream) error{
		"Close": network.MuxedStream.Close, "Reset": network.MuxedStream.Reset,
	} {
		t.Run(name+"FreesCalls", func(t *testing.T) { near, _ := streams(t); freesCalls(t, near, end) })
	}
	t.Run("ConnClose", func(t *testing.T) { connClose(t, connect) })
	t.Run("Backlog", func(t *testing.T) { backlog(t, connect, shape.Backlog) })
	t.Run("Limits", func(t *testing.T) { limits(t, connect) })
}

func stream(t *testing.T, a, b transport.CapableConn) (near, far network.MuxedStream) {
	t.Helper()
	near, err := a.OpenStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if far, err = b.AcceptStream(); err != nil {
		t.Fatal(err)
	}
	return near, far
}

// must fails the test on what has to succeed.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// second is the error of a call that returns something as well.
func second[T any](_ T, err error) error { return err }

// soon is a deadline that is not yet over.
func soon() time.Time { return time.Now().Add(20 * time.Millisecond) }

// over is one that is.
var over = time.Unix(1, 0)

func backpressure(t *testing.T, near, far network.MuxedStream, shape Shape) {
	for range shape.Window / shape.Piece {
		must(t, second(near.Write(make([]byte, shape.Piece))))
	}
	must(t, near.SetWriteDeadline(soon()))
	if n, err := near.Write([]byte{1}); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("beyond the window: %d bytes, %v", n, err)
	}
	must(t, near.SetWriteDeadline(time.Time{}))
	must(t, second(io.ReadFull(far, make([]byte, shape.Window))))
	if n, err := near.Write([]byte{1}); n != 1 || err != nil {
		t.Errorf("after the deadline was lifted: %d, %v", n, err)
	}
}

func readDeadline(t *testing.T, near, far network.MuxedStream) {
	for _, when := range []time.Time{soon(), over} {
		must(t, far.SetReadDeadline(when))
		if err := second(far.Read(make([]byte, 1))); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v", err)
		}
	}
	must(t, far.SetDeadline(time.Time{}))
	done := make(chan error, 1)
	go func() { done <- second(far.Read(make([]byte, 1))) }()
	must(t, far.SetDeadline(over)) // frees it, asleep or not
	if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("freed by %v", err)
	}
	must(t, far.SetReadDeadline(time.Time{}))
	must(t, second(near.Write([]byte{7})))
	if n, err := far.Read(make([]byte, 9)); n != 1 || err != nil {
		t.Errorf("after the deadline was lifted: %d, %v", n, err)
	}
}

// halfClose: each half closes by itself.
func halfClose(t *testing.T, near, far network.MuxedStream) {
	must(t, second(near.Write([]byte("last"))))
	must(t, near.CloseWrite())
	if err := second(near.Write([]byte{1})); !errors.Is(err, pipe.ErrClosed) {
		t.Errorf("write after CloseWrite: %v", err)
	}
	if got, err := io.ReadAll(far); string(got) != "last" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := far.Write([]byte("answer")); err != nil {
		t.Errorf("the other half: %v", err)
	}
	must(t, near.CloseRead())
	if err := second(near.Read(make([]byte, 1))); !errors.Is(err, pipe.ErrClosed) {
		t.Errorf("read after CloseRead: %v", err)
	}
	if err := second(far.Write(make([]byte, 2<<20))); !errors.Is(err, pipe.ErrStopped) {
		t.Errorf("write to a reader that has gone: %v", err)
	}
}

// closeDelivers: what was written before Close arrives, and is followed by the end.
func closeDelivers(t *testing.T, near, far network.MuxedStream) {
	must(t, second(near.Write([]byte("all of it"))))
	must(t, near.Close())
	if got, err := io.ReadAll(far); string(got) != "all of it" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := near.Reset(); err != nil { // of a closed stream: nothing
		t.Error(err)
	}
	if err := second(near.Read(make([]byte, 1))); !errors.Is(err, pipe.ErrClosed) {
		t.Errorf("%v", err)
	}
}

func reset(t *testing.T, near, far network.MuxedStream) {
	const code = 0x504d0003
	calls := make(chan error, 2)
	go func() { calls <- second(far.Read(make([]byte, 1))) }()
	go func() { calls <- second(far.Write(make([]byte, 2<<20))) }()
	must(t, near.ResetWithError(code))
	for range 2 {
		if err := <-calls; !errors.Is(err, &network.StreamError{ErrorCode: code, Remote: true}) {
			t.Errorf("at the other side: %v", err)
		}
	}
	if err := second(near.Write([]byte{1})); !errors.Is(err, &network.StreamError{ErrorCode: code}) {
		t.Errorf("at this side: %v", err)
	}
}

// freesCalls: calls under way return when the stream ends beside them.
func freesCalls(t *testing.T, near network.MuxedStream, end func(network.MuxedStream) error) {
	calls := make(chan error, 2)
	go func() { calls <- second(near.Read(make([]byte, 1))) }()
	go func() { calls <- second(near.Write(make([]byte, 2<<20))) }()
	must(t, end(near))
	for range 2 {
		if err := <-calls; err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%v", err)
		}
	}
}

// lend: a reader takes what it likes from where it lies.
func lend(t *testing.T, near, far network.MuxedStream) {
	must(t, second(near.Write([]byte("abcdef"))))
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
}
