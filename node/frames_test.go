package node

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/bits"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
)

// A budget is a peer's limits of so many bytes, and all that is taken of them.
type budget struct {
	network.NullScope
	most, held int
}

func (b *budget) Peer() peer.ID                                 { return "p" }
func (b *budget) BeginSpan() (network.ResourceScopeSpan, error) { return b, nil }
func (b *budget) ReleaseMemory(n int)                           { b.held -= n }
func (b *budget) Done()                                         { b.held = 0 }
func (b *budget) ReserveMemory(n int, _ uint8) error {
	if b.held+n > b.most {
		return network.ErrResourceLimitExceeded
	}
	b.held += n
	return nil
}

// A script is a connection from which a test's bytes are read, in pieces of any size.
type script struct {
	net.Conn
	in bytes.Buffer
}

func (s *script) Read(p []byte) (int, error) {
	return s.in.Read(p[:min(len(p), 1+rand.IntN(2000))])
}
func (s *script) Write(p []byte) (int, error) { return len(p), nil }
func (s *script) Close() error                { return nil }

// books is a ledger on a script.
func books(t *testing.T, most int) (*ledger, *script, *budget) {
	t.Helper()
	b, s := &budget{most: most}, &script{}
	l, err := newLedger(s, b)
	if err != nil {
		t.Fatal(err)
	}
	return l, s, b
}

// take has a ledger read frames of one stream, of so many bytes each.
func take(l *ledger, s *script, stream uint32, frames, size int, flags uint16) error {
	for range frames {
		s.in.Write(frame(yamuxData, flags, stream, uint32(size)))
		s.in.Write(make([]byte, size))
	}
	for p := make([]byte, 4096); ; {
		if _, err := l.Read(p); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// Small frames count from when they come until they have surely been read, or their
// stream is over; larger ones do not.
func TestLedger(t *testing.T) {
	l, s, b := books(t, 1<<30)
	want := func(what string, bytes int) {
		t.Helper()
		if l.counted != bytes || b.held < bytes || b.held > bytes+2*ledgerStep {
			t.Errorf("%s: %d bytes count and %d are reserved, want %d", what, l.counted, b.held, bytes)
		}
	}
	say := func(kind byte, flags uint16, stream, length uint32) {
		t.Helper()
		if _, err := l.Write(frame(kind, flags, stream, length)); err != nil {
			t.Fatal(err)
		}
	}
	noStream := take(l, s, 9, 50, 1, 0)
	want("of no stream", 0)
	begun := take(l, s, 1, 1, 3, yamuxSYN)
	small := take(l, s, 1, 9999, smallFrame-1, 0)
	want("small frames", accountCost+10000*frameCost)
	large := errors.Join(take(l, s, 1, 1000, smallFrame, 0), take(l, s, 1, 3, 1000, 0), take(l, s, 1, 5, 0, 0))
	want("larger ones, and empty ones", accountCost+10000*frameCost)
	if err := errors.Join(noStream, begun, small, large); err != nil {
		t.Fatal(err)
	}
	in := uint32(3 + 9999*(smallFrame-1) + 1000*smallFrame + 3*1000)
	say(yamuxWindow, yamuxACK, 1, Window-yamuxInitial)
	want("taken, not read", accountCost+10000*frameCost)
	if err := take(l, s, 1, 100, 1, 0); err != nil {
		t.Fatal(err)
	}
	say(yamuxWindow, 0, 1, in-1)
	want("read but for a byte, which is a frame at most", accountCost+101*frameCost)
	say(yamuxWindow, 0, 1, 1)
	want("the first are read", accountCost+100*frameCost)
	say(yamuxWindow, 0, 1, 100)
	want("all are read", accountCost)
	say(yamuxWindow, yamuxFIN, 1, 0)
	want("half closed", accountCost)
	if err := take(l, s, 1, 1, 1, yamuxFIN); err != nil {
		t.Fatal(err)
	}
	want("closed", 0)
	say(yamuxWindow, yamuxSYN, 2, Window-yamuxInitial)
	if err := take(l, s, 2, 5000, 1, 0); err != nil {
		t.Fatal(err)
	}
	say(2, yamuxSYN, 0, 7) // a ping
	want("a stream of ours", accountCost+5000*frameCost)
	say(yamuxWindow, yamuxReset, 2, 0x504d0001)
	want("reset", 0)
	say(yamuxWindow, yamuxSYN, 4, Window-yamuxInitial)
	say(yamuxWindow, yamuxFIN, 4, Window)
	if err := errors.Join(take(l, s, 4, 7, 1, 0), take(l, s, 4, 1, 1, yamuxSYN), take(l, s, 4, 9, 1, 0)); err != nil {
		t.Fatal(err)
	}
	want("begun anew", accountCost+10*frameCost)
	say(yamuxWindow, 0, 4, Window-yamuxInitial)
	want("what its first life was granted is of no use", accountCost+10*frameCost)
	say(yamuxWindow, yamuxReset, 4, 0)
	if err := errors.Join(take(l, s, 3, 3, 1, yamuxSYN), l.Close(), l.Close(), take(l, s, 3, 3, 1, 0)); err != nil || b.held != 0 {
		t.Errorf("closed, %d bytes are held: %v", b.held, err)
	}
}

// What yamux keeps of a frame, a buffer of a power of two bytes and 24 bytes in a list that
// grows by a quarter, is at most what a small one counts, and three times a larger one.
func TestFrameCost(t *testing.T) {
	for n := 1; n <= muxFrame; n++ {
		held := 1<<bits.Len(uint(n-1)) + 24*5/4
		if n < smallFrame && held > frameCost || n >= smallFrame && held > 3*n {
			t.Fatalf("a frame of %d bytes takes %d", n, held)
		}
	}
}

// Too many small frames, or more than the peer's limits have room for, end it.
func TestLedgerLimits(t *testing.T) {
	for name, most := range map[string]int{"its own": 1 << 30, "the peer's": 1 << 20} {
		l, s, b := books(t, most)
		err := take(l, s, 1, 1, 1, yamuxSYN)
		for n := 0; err == nil && n <= maxSmall/frameCost; n += 1 << 10 {
			err = take(l, s, 1, 1<<10, 1, 0)
		}
		if !errors.Is(err, ErrLimit) || b.held > min(most, maxSmall) {
			t.Errorf("%s: %d bytes are held: %v", name, b.held, err)
		}
	}
}

// Single bytes without end, on one stream, do not: whether each is read when it comes, or
// the reader is so slow that the sender waits for it.
func TestLedgerSpares(t *testing.T) {
	for name, late := range map[string]int{"at once": 0, "a window behind": Window / 2} {
		l, _, _ := books(t, 1<<30)
		one := yamuxHeader{kind: yamuxData, flags: yamuxSYN, stream: 1, length: 1}
		update := yamuxHeader{kind: yamuxWindow, flags: yamuxACK, stream: 1, length: Window - yamuxInitial}
		for in, granted := 0, Window; in < 3*Window; one.flags = 0 {
			if err := l.received(one); err != nil {
				t.Fatalf("%s: %d frames: %v", name, in, err)
			}
			if in++; in > 1 && in != granted-Window/2+late {
				continue
			}
			if err := l.sent(update); err != nil {
				t.Fatal(err)
			}
			if in > 1 {
				granted += Window / 2
			}
			update.flags, update.length = 0, Window/2
		}
		if l.counted > Window*frameCost+accountCost {
			t.Errorf("%s: %d bytes count", name, l.counted)
		}
	}
}

// Streams without end that are closed on our side only count as well.
func TestLedgerHalfClosed(t *testing.T) {
	l, s, _ := books(t, 1<<20)
	for id := uint32(1); ; id += 2 {
		err := take(l, s, id, 1, 100, yamuxSYN)
		if _, e := l.Write(frame(yamuxWindow, yamuxFIN, id, 0)); e != nil {
			t.Fatal(e)
		}
		if errors.Is(err, ErrLimit) {
			break
		}
		if err != nil || id > 4<<20/accountCost {
			t.Fatalf("%d streams: %v", id, err)
		}
	}
}

// However a member cuts what it sends, a ledger finds the same frames, and what it counts
// is never less than nothing, nor anything once all streams are over.
func FuzzLedger(f *testing.F) {
	f.Add(frame(yamuxData, yamuxSYN, 1, 1), frame(yamuxWindow, yamuxACK, 1, Window))
	f.Add(append(frame(yamuxData, yamuxSYN, 1, 2), 7, 7), frame(yamuxWindow, yamuxReset, 1, 0))
	f.Fuzz(func(t *testing.T, in, out []byte) {
		b := &budget{most: 1 << 20}
		l, err := newLedger(&script{in: *bytes.NewBuffer(in)}, b)
		if err != nil {
			t.Fatal(err)
		}
		_, readErr := io.Copy(io.Discard, l)
		_, writeErr := l.Write(out)
		if readErr != nil && !errors.Is(readErr, ErrLimit) || writeErr != nil && !errors.Is(writeErr, ErrLimit) {
			t.Error(readErr, writeErr)
		}
		for id, a := range l.accounts {
			l.end(a, yamuxHeader{stream: id, flags: yamuxReset}, 2)
		}
		if l.counted != 0 || b.held > 2*ledgerStep {
			t.Errorf("%d bytes count, %d are held", l.counted, b.held)
		}
	})
}

// A member that sends single bytes, each in a frame of its own, on a stream that nobody
// reads, loses its connection before they take much memory, and another is served as
// before. One that sends as many to who reads them does not.
func TestSmallFrames(t *testing.T) {
	c := Config{Transports: []string{TCP}, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Peers: 4}
	a, _, good := echoing(t, c)
	sink(t, a)
	raw := make(chan net.Conn, 1)
	bad, err := libp2p.New(libp2p.NoListenAddrs, libp2p.Security(noise.ID, noise.New), libp2p.DisableMetrics(),
		libp2p.Muxer(yamux.ID, tap{yamux.DefaultTransport, raw}))
	if err != nil {
		t.Fatal(err)
	}
	defer bad.Close()
	if err := bad.Connect(t.Context(), info(t, a)); err != nil {
		t.Fatal(err)
	}
	conn, w := bad.Network().ConnsToPeer(a.ID())[0], <-raw
	heap, sent := heapSize(), 0
	most := uint64(0)
	for stream := uint32(100001); !conn.IsClosed() && sent <= 2*maxSmall/frameCost; stream += 2 {
		asks := hello + "\x06/sink\n"
		p := append(frame(yamuxData, yamuxSYN, stream, uint32(len(asks))), asks...)
		for range yamuxInitial - len(asks) {
			if p = append(append(p, frame(yamuxData, 0, stream, 1)...), 0); len(p) < 64<<10 {
				continue
			}
			// yamux, beside us, gives its own writes ten seconds, and with them ours.
			if err := w.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				break
			}
			if _, err := w.Write(p); err != nil {
				break
			}
			p = p[:0]
		}
		sent += yamuxInitial
		most = max(most, heapSize())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !conn.IsClosed() { // until it is hung up on
		if _, err := conn.NewStream(ctx); ctx.Err() != nil {
			t.Fatalf("%d frames of a byte, and it is still there: %v", sent, err)
		}
	}
	if most > heap+maxSmall+32<<20 { // with what this test sends
		t.Errorf("%d MiB in use for %d frames, %d before", most>>20, sent, heap>>20)
	}
	t.Logf("%d frames: %d MiB in use, %d before", sent, most>>20, heap>>20)
	rounds(t, good, 1, 1024)
	rounds(t, good, 2000, 1)
}
