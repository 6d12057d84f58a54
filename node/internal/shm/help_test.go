//go:build linux && (amd64 || arm64)

package shm

import (
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
)

// conns makes two ends of a connection, of two hosts in this process.
func conns(t testing.TB) (near, far *Conn) {
	t.Helper()
	a, b := transports(t)
	return connect(t, a, b)
}

func connect(t testing.TB, a, b *Transport) (near, far *Conn) {
	t.Helper()
	l, err := b.Listen(b.place.address(anyName))
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.Dial(t.Context(), l.Multiaddr(), b.id)
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return c.(*Conn), d.(*Conn)
}

// streams makes two ends of a stream.
func streams(t testing.TB) (near, far *Stream) {
	t.Helper()
	c, d := conns(t)
	return stream(t, c, d)
}

func stream(t testing.TB, c, d *Conn) (near, far *Stream) {
	t.Helper()
	s, err := c.OpenStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.AcceptStream()
	if err != nil {
		t.Fatal(err)
	}
	var _ network.MuxedStream = s
	return s.(*Stream), r.(*Stream)
}
