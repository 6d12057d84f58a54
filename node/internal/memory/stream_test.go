package memory

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/node/internal/pipe"

	"github.com/libp2p/go-libp2p/core/network"
)

// streams makes the two ends of a stream between two hosts.
func streams(t testing.TB) (near, far network.MuxedStream) {
	t.Helper()
	a, b := transports(t)
	c, d := dialled(t, a, b)
	var err error
	if near, err = c.OpenStream(t.Context()); err != nil {
		t.Fatal(err)
	}
	if far, err = d.AcceptStream(); err != nil {
		t.Fatal(err)
	}
	return near, far
}

// Short and long writes, buffered and lent, arrive in order.
func TestBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := streams(t)
		want := bytes.Repeat([]byte("0123456789abcdef-"), 200_000)
		go func() {
			for i, rest := 0, want; len(rest) > 0; i++ {
				n := min(len(rest), []int{1, 5000, 130 << 10, 70 << 10, 400 << 10}[i%5])
				if _, err := near.Write(rest[:n]); err != nil {
					t.Error(err)
				}
				rest = rest[n:]
			}
			_ = near.CloseWrite() // does not fail
		}()
		if got, err := io.ReadAll(far); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
		}
	})
}

// A window of short writes goes ahead of the reader, and none of a long one.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := streams(t)
		_ = near.SetDeadline(time.Now().Add(time.Minute))    // neither
		_ = far.SetReadDeadline(time.Now().Add(time.Second)) // fails
		if _, err := far.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if n, err := near.Write(make([]byte, long)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d, %v", n, err)
		}
		_ = near.SetDeadline(time.Time{})
		for range window / (64 << 10) {
			if _, err := near.Write(make([]byte, 64<<10)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestEnds(t *testing.T) {
	near, far := streams(t)
	_, _ = near.Write([]byte("last")) // neither
	_ = near.CloseWrite()             // fails
	if got, err := io.ReadAll(far); string(got) != "last" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	_ = near.CloseRead()
	if _, err := far.Write(make([]byte, 2*window)); !errors.Is(err, pipe.ErrStopped) {
		t.Errorf("%v", err)
	}
	near, far = streams(t)
	_ = near.ResetWithError(7)
	if _, err := far.Read(make([]byte, 1)); !errors.Is(err, &network.StreamError{ErrorCode: 7, Remote: true}) {
		t.Errorf("%v", err)
	}
	if _, err := near.Write([]byte{1}); !errors.Is(err, &network.StreamError{ErrorCode: 7}) {
		t.Errorf("%v", err)
	}
}
