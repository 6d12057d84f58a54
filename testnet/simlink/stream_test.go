package simlink

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// numbered is n bytes of which each says where it stands.
func numbered(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i ^ i>>8)
	}
	return p
}

// readAll reads to the end, in pieces of that size.
func readAll(s *stream, piece int) (all []byte, err error) {
	for p := make([]byte, piece); err == nil; {
		var n int
		n, err = s.Read(p)
		all = append(all, p[:n]...)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return all, err
}

// What is written is read, whatever the sizes of writes, packets and reads; then comes
// the end, which is that of one direction.
func TestStreamCarries(t *testing.T) {
	link := Link{Latency: time.Millisecond, Jitter: time.Millisecond, Loss: 0.1}
	for _, piece := range []int{1, 100, PacketSize, 3*PacketSize + 1} {
		inLab(t, "", Config{Link: link, Window: 2 * PacketSize}, func(l *lab) {
			want := numbered(5*PacketSize + 7)
			go func() {
				for p := want; len(p) > 0; {
					n, err := l.near.Write(p[:min(len(p), 3*piece+5)])
					if err != nil {
						l.Error(err)
						return
					}
					p = p[n:]
				}
				if err := l.near.CloseWrite(); err != nil {
					l.Error(err)
				}
			}()
			far := l.near.peer
			got, err := readAll(far, piece)
			if err != nil || !bytes.Equal(got, want) {
				l.Errorf("in pieces of %d: %d bytes of %d, %v", piece, len(got), len(want), err)
			}
			if _, err := far.Write([]byte("yes")); err != nil {
				l.Errorf("the other direction: %v", err)
			}
			far.Close()
			if got, err := readAll(l.near, piece); err != nil || string(got) != "yes" {
				l.Errorf("in return: %q, %v", got, err)
			}
		})
	}
}

// Small writes of one instant travel as one packet, and one of a later instant does not
// wait for more.
func TestWritesTravelTogether(t *testing.T) {
	inLab(t, "", Config{Link: Link{Latency: time.Millisecond}}, func(l *lab) {
		for range 10 {
			l.send(l.near, 10)
		}
		time.Sleep(2 * tick)
		l.send(l.near, 5)
		var sizes []int
		for _, e := range l.after(time.Second) {
			sizes = append(sizes, e.Bytes)
		}
		if len(sizes) != 2 || sizes[0] != 100 || sizes[1] != 5 {
			l.Errorf("packets of %v bytes, want 100 and 5", sizes)
		}
	})
}

// After an end of one's own there is nothing to write, and after CloseRead nothing to read.
func TestUseAfterClose(t *testing.T) {
	inLab(t, "", Config{}, func(l *lab) {
		if err := errors.Join(l.near.CloseWrite(), l.near.CloseWrite()); err != nil {
			l.Errorf("closed twice: %v", err)
		}
		if _, err := l.near.Write([]byte{1}); !errors.Is(err, errWriteClosed) {
			l.Errorf("written after CloseWrite: %v", err)
		}
		if err := l.near.CloseRead(); err != nil {
			l.Error(err)
		}
		if _, err := l.near.Read(make([]byte, 1)); !errors.Is(err, errReadClosed) {
			l.Errorf("read after CloseRead: %v", err)
		}
	})
}

// Who does not want to read any more does not hold up who writes.
func TestCloseReadOpensWindow(t *testing.T) {
	inLab(t, "", Config{Window: PacketSize}, func(l *lab) {
		done := make(chan time.Duration, 1)
		go func() { l.send(l.near, 40*PacketSize); done <- l.net.Since() }()
		l.after(time.Second)
		select {
		case at := <-done:
			l.Fatalf("all was written after %v, beyond a window that nobody reads from", at)
		default:
		}
		if err := l.near.peer.CloseRead(); err != nil {
			l.Error(err)
		}
		<-done
	})
}

// A deadline ends a read and a write that wait, those after it too, and nothing once it
// is taken back.
func TestDeadlines(t *testing.T) {
	const limit = 50 * time.Millisecond
	inLab(t, "", Config{Port: Port{Up: 1e3, Queue: 1}}, func(l *lab) {
		start := l.net.Since()
		if err := l.near.SetDeadline(time.Now().Add(limit)); err != nil {
			l.Error(err)
		}
		for _, c := range []struct {
			name string
			try  func() (int, error)
		}{
			{"a read", func() (int, error) { return l.near.Read(make([]byte, 1)) }},
			{"a write", func() (int, error) { return l.near.Write(make([]byte, 2*sendBuffer)) }},
			{"a read again", func() (int, error) { return l.near.Read(make([]byte, 1)) }},
		} {
			if _, err := c.try(); !errors.Is(err, os.ErrDeadlineExceeded) {
				l.Errorf("%s: %v, want a deadline", c.name, err)
			}
			l.took(c.name, l.net.Since()-start, limit)
		}
		if err := l.near.SetDeadline(time.Time{}); err != nil {
			l.Error(err)
		}
		if _, err := l.near.Write([]byte{1}); err != nil {
			l.Errorf("without a deadline: %v", err)
		}
	})
}

// A deadline that is set while another waits is heard of, and what was read before it
// counts.
func TestDeadlineWhileWaiting(t *testing.T) {
	inLab(t, "", Config{}, func(l *lab) {
		l.send(l.near, 3)
		got := make(chan error, 1)
		go func() {
			_, err := io.ReadFull(l.near.peer, make([]byte, 4))
			got <- err
		}()
		l.after(time.Second)
		if err := l.near.peer.SetReadDeadline(time.Now()); err != nil {
			l.Error(err)
		}
		if err := <-got; !errors.Is(err, os.ErrDeadlineExceeded) {
			l.Errorf("%v, want a deadline", err)
		}
	})
}

// A reset ends both directions on both sides, with its code, and takes with it what was
// on its way to be sent.
func TestReset(t *testing.T) {
	const code = 42
	inLab(t, "", Config{Link: Link{Latency: time.Millisecond}, Port: Port{Up: 1e6, Queue: 1}}, func(l *lab) {
		l.send(l.near, 3*PacketSize)
		time.Sleep(time.Millisecond)
		if err := l.near.ResetWithError(code); err != nil {
			l.Error(err)
		}
		l.after(time.Second)
		for remote, s := range map[bool]*stream{false: l.near, true: l.near.peer} {
			_, rerr := s.Read(make([]byte, 1))
			_, werr := s.Write([]byte{1})
			for _, err := range []error{rerr, werr} {
				var e *network.StreamError
				if !errors.As(err, &e) || e.ErrorCode != code || e.Remote != remote {
					l.Errorf("remote %v: %v, want code %d", remote, err, code)
				}
			}
		}
		if n := len(l.after(0)); n >= 3 {
			l.Errorf("%d packets landed of a stream that was reset after the first", n)
		}
		if len(l.near.conn.open())+len(l.near.peer.conn.open()) != 0 {
			l.Error("the stream is not forgotten")
		}
	})
}

// A reset after both ends is none: all was said.
func TestResetAfterEnds(t *testing.T) {
	inLab(t, "", Config{}, func(l *lab) {
		l.send(l.near, 1)
		l.after(tick * 10)
		errs := errors.Join(l.near.CloseWrite(), l.near.peer.CloseWrite())
		l.after(time.Second)
		if err := errors.Join(errs, l.near.Reset()); err != nil {
			l.Error(err)
		}
		if got, err := readAll(l.near.peer, 10); err != nil || len(got) != 1 {
			l.Errorf("%d bytes, %v: want what was said before", len(got), err)
		}
	})
}

// A connection that is closed says so with its code on the other side, after what was
// written before, and its streams are over.
func TestConnClose(t *testing.T) {
	const code = 7
	inLab(t, "", Config{Link: Link{Latency: time.Millisecond}}, func(l *lab) {
		near, far := l.near.conn, l.near.peer.conn
		l.send(l.near, 10)
		if err := errors.Join(l.near.CloseWrite(), near.CloseWithError(code), near.Close()); err != nil {
			l.Error(err)
		}
		if !near.IsClosed() || far.IsClosed() {
			l.Error("want the connection closed here, and there a way later")
		}
		l.after(time.Second)
		if !far.IsClosed() {
			l.Error("the other side has not heard")
		}
		if got, err := readAll(l.near.peer, 100); err != nil || len(got) != 10 {
			l.Errorf("%d bytes, %v: want the 10 that were written and ended before", len(got), err)
		}
		var e *network.ConnError
		if _, err := far.AcceptStream(); !errors.As(err, &e) || !e.Remote || e.ErrorCode != code {
			l.Errorf("accept: %v, want code %d", err, code)
		}
		if _, err := near.OpenStream(t.Context()); !errors.As(err, &e) || e.Remote {
			l.Errorf("open: %v, want our own code", err)
		}
		if _, err := l.near.Write([]byte{1}); err == nil {
			l.Error("written to a connection that is closed")
		}
	})
}

// The other side learns of streams that opened at one instant in the order of what was
// written to them first, and of no more than it may have waiting.
func TestAccept(t *testing.T) {
	inLab(t, "", Config{Window: 10}, func(l *lab) {
		c := l.near.conn
		for i := range maxUnaccepted + 1 {
			s, err := c.OpenStream(l.Context())
			if err != nil {
				l.Fatal(err)
			}
			if _, err := s.Write([]byte{byte(i >> 8), byte(i)}); err != nil {
				l.Fatal(err)
			}
			if i == maxUnaccepted-1 {
				l.after(time.Second) // the last one finds all places taken
			}
			if i < maxUnaccepted {
				continue
			}
			l.after(time.Second)
			var e *network.StreamError
			if _, err := s.Read(make([]byte, 1)); !errors.As(err, &e) || e.ErrorCode != network.StreamResourceLimitExceeded {
				l.Errorf("one too many: %v", err)
			}
		}
		for i := range maxUnaccepted {
			s, err := c.peer.AcceptStream()
			if err != nil {
				l.Fatal(err)
			}
			p := make([]byte, 2)
			if _, err := io.ReadFull(s, p); err != nil || int(p[0])<<8|int(p[1]) != i {
				l.Fatalf("stream %d is number %d of those opened (%v)", i, int(p[0])<<8|int(p[1]), err)
			}
		}
	})
}

// What ends with the network ends with an error, and at once.
func TestNetworkClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lab{T: t, net: New(Config{Hosts: 2})}
		l.near = l.stream(0, 1)
		got := make(chan error, 2)
		go func() { _, err := l.near.Read(make([]byte, 1)); got <- err }()
		go func() { _, err := l.near.peer.conn.AcceptStream(); got <- err }()
		synctest.Wait()
		if err := errors.Join(l.net.Close(), l.net.Close()); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := <-got; !errors.Is(err, errNetworkClosed) {
				t.Errorf("%v, want that the network is closed", err)
			}
		}
	})
}
