package tcp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// A fake is a raw connection that notes what is written, and yields what is to be read
// in pieces of a given size.
type fake struct {
	writes [][]byte
	in     []byte
	piece  int
	fail   error // of the next write, half way
	stuck  chan struct{}
	begun  chan struct{} // closed when a write is stuck
}

func (f *fake) Write(p []byte) (int, error) {
	if f.stuck != nil {
		close(f.begun)
		<-f.stuck
		return 0, net.ErrClosed
	}
	if f.fail != nil {
		return len(p) / 2, f.fail
	}
	f.writes = append(f.writes, bytes.Clone(p))
	return len(p), nil
}

func (f *fake) Read(p []byte) (int, error) {
	if len(f.in) == 0 {
		return 0, io.EOF
	}
	n := copy(p, f.in[:min(f.piece, len(f.in))])
	f.in = f.in[n:]
	return n, nil
}

func (f *fake) Close() error {
	if f.stuck != nil {
		close(f.stuck)
	}
	return nil
}

func (f *fake) LocalAddr() net.Addr                  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
func (f *fake) RemoteAddr() net.Addr                 { return f.LocalAddr() }
func (f *fake) LocalMultiaddr() multiaddr.Multiaddr  { return nil }
func (f *fake) RemoteMultiaddr() multiaddr.Multiaddr { return nil }
func (f *fake) SetDeadline(time.Time) error          { return nil }
func (f *fake) SetReadDeadline(time.Time) error      { return nil }
func (f *fake) SetWriteDeadline(time.Time) error     { return nil }

var _ manet.Conn = (*fake)(nil)

// What is held leaves in one write, in order, and only then.
func TestHold(t *testing.T) {
	f := &fake{}
	w := newWire(f)
	write := func(s string) {
		t.Helper()
		if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatalf("Write(%q) = %d, %v", s, n, err)
		}
	}
	write("hello ")
	w.hold()
	write("held ")
	write("back")
	if len(f.writes) != 1 {
		t.Fatalf("%d writes while held, want 1", len(f.writes))
	}
	if err := w.release(); err != nil {
		t.Fatal(err)
	}
	write(" and on")
	want := []string{"hello ", "held back", " and on"}
	for i, p := range f.writes {
		if string(p) != want[i] {
			t.Errorf("write %d is %q, want %q", i, p, want[i])
		}
	}
	if len(f.writes) != len(want) {
		t.Errorf("%d writes, want %d", len(f.writes), len(want))
	}
}

// After a send that failed half way nothing may follow: it would be read as the rest.
func TestFailedSend(t *testing.T) {
	boom := errors.New("boom")
	f := &fake{fail: boom}
	w := newWire(f)
	w.hold()
	if _, err := w.Write(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := w.release(); !errors.Is(err, boom) {
		t.Fatalf("release: %v", err)
	}
	f.fail = nil
	if _, err := w.Write([]byte("more")); !errors.Is(err, boom) {
		t.Errorf("Write after a failed one: %v", err)
	}
	if len(f.writes) != 0 {
		t.Errorf("wrote %q after a failed write", f.writes)
	}
}

// However a connection yields its bytes and whatever sizes are asked for, they are the
// same bytes.
func FuzzRead(f *testing.F) {
	f.Add([]byte("some bytes"), 3, 4)
	f.Add(bytes.Repeat([]byte("0123456789abcdef"), 3*readSize/16), 70000, readSize+1)
	f.Fuzz(func(t *testing.T, data []byte, piece, ask int) {
		piece, ask = 1+(piece&(1<<20-1)), 1+(ask&(1<<20-1))
		w := newWire(&fake{in: data, piece: piece})
		var got []byte
		p := make([]byte, ask)
		for {
			n, err := w.Read(p)
			got = append(got, p[:n]...)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || n == 0 {
				t.Fatalf("Read = %d, %v", n, err)
			}
		}
		if !bytes.Equal(got, data) {
			t.Errorf("read %d bytes, want %d", len(got), len(data))
		}
	})
}

// sealed is a security layer that makes a record of every 1000 bytes.
type sealed struct{ net.Conn }

func (s sealed) Write(p []byte) (n int, err error) {
	for n < len(p) {
		k, err := s.Conn.Write(p[n:min(n+1000, len(p))])
		n += k
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// capture is a muxer that only shows what connection it was given.
type capture struct{ c net.Conn }

func (m *capture) NewConn(c net.Conn, _ bool, _ network.PeerScope) (network.MuxedConn, error) {
	m.c = c
	return nil, nil
}

func batchOf(t *testing.T, c net.Conn) net.Conn {
	t.Helper()
	var m capture
	if _, err := Batch(&m).NewConn(c, true, nil); err != nil {
		t.Fatal(err)
	}
	return m.c
}

// Each batchSize bytes of a muxer's write are one write below, whatever the records.
func TestBatch(t *testing.T) {
	f := &fake{}
	b := batchOf(t, sealed{newWire(f)})
	data := bytes.Repeat([]byte("0123456789"), batchSize/4)
	if n, err := b.Write(data); n != len(data) || err != nil {
		t.Fatalf("Write = %d, %v", n, err)
	}
	if want := (len(data) + batchSize - 1) / batchSize; len(f.writes) != want {
		t.Errorf("%d writes, want %d", len(f.writes), want)
	}
	if !bytes.Equal(bytes.Join(f.writes, nil), data) {
		t.Error("the bytes are not those written")
	}
}

// A connection that is not ours is left alone.
func TestBatchElsewhere(t *testing.T) {
	var c net.Conn = sealed{&fake{}}
	if got := batchOf(t, c); got != c {
		t.Errorf("a connection without a wire became %T", got)
	}
}

// An error of the security layer is not lost when the wire is released.
func TestBatchError(t *testing.T) {
	boom := errors.New("boom")
	b := batchOf(t, sealed{newWire(&fake{fail: boom})})
	if n, err := b.Write(make([]byte, 10)); n != 0 || !errors.Is(err, boom) {
		t.Errorf("Write = %d, %v", n, err)
	}
}

// Close ends a write that the other side does not take.
func TestBatchClose(t *testing.T) {
	f := &fake{stuck: make(chan struct{}), begun: make(chan struct{})}
	w := newWire(f)
	b := &batch{Conn: closedAfter{w}, wire: w}
	done := make(chan error, 1)
	go func() {
		_, err := b.Write([]byte("never taken"))
		done <- err
	}()
	<-f.begun
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write: %v", err)
	}
}

// closedAfter is a security layer that is closed after its wire.
type closedAfter struct{ *wire }

func (closedAfter) Close() error { return net.ErrClosed }
