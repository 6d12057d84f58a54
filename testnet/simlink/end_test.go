package simlink

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// Each direction ends by itself: who has said all still hears all, also what comes long
// after, and the stream is forgotten once both have ended.
func TestHalfClose(t *testing.T) {
	inLab(t, "", Config{Link: Link{Latency: time.Millisecond}}, func(l *lab) {
		near, far := l.near, l.near.peer
		l.send(near, 10)
		if err := near.CloseWrite(); err != nil {
			l.Error(err)
		}
		if got, err := readAll(far, 4); err != nil || len(got) != 10 {
			l.Errorf("%d bytes, %v", len(got), err)
		}
		l.after(time.Hour)
		for range 3 {
			if _, err := far.Write([]byte("more")); err != nil {
				l.Errorf("to one that has said all: %v", err)
			}
			p := make([]byte, 4)
			if _, err := io.ReadFull(near, p); err != nil || string(p) != "more" {
				l.Errorf("%q, %v", p, err)
			}
			l.after(time.Minute)
		}
		if n := len(near.conn.open()) + len(far.conn.open()); n != 2 {
			l.Errorf("%d ends of the stream are known, want both", n)
		}
		if err := far.CloseWrite(); err != nil {
			l.Error(err)
		}
		if got, err := readAll(near, 1); err != nil || len(got) != 0 {
			l.Errorf("then %q, %v", got, err)
		}
		l.after(time.Second)
		if n := len(near.conn.open()) + len(far.conn.open()); n != 0 {
			l.Errorf("%d ends of the stream are still known", n)
		}
	})
}

// Close says all that was written before, however long that takes, and reads no more.
func TestCloseDelivers(t *testing.T) {
	inLab(t, "", Config{Link: Link{Latency: time.Second, Loss: 0.3}, Port: Port{Up: 1e4, Queue: 1}}, func(l *lab) {
		want := numbered(3 * PacketSize)
		if _, err := l.near.Write(want); err != nil {
			l.Error(err)
		}
		l.send(l.near.peer, 10)
		if err := errors.Join(l.near.Close(), l.near.Close()); err != nil {
			l.Error(err)
		}
		if _, err := l.near.Read(make([]byte, 1)); !errors.Is(err, errReadClosed) {
			l.Errorf("read after Close: %v", err)
		}
		if got, err := readAll(l.near.peer, 1000); err != nil || !bytes.Equal(got, want) {
			l.Errorf("%d bytes of %d, %v", len(got), len(want), err)
		}
		if err := l.near.peer.Close(); err != nil {
			l.Error(err)
		}
	})
}

// A stream without a word is not heard of: neither when it is closed for reading nor when
// it is reset before it has said anything, but its end is a word.
func TestSilentStreams(t *testing.T) {
	inLab(t, "", Config{}, func(l *lab) {
		c := l.near.conn
		open := func() *stream {
			s, err := c.OpenStream(l.Context())
			if err != nil {
				l.Fatal(err)
			}
			return s.(*stream)
		}
		silent, ended := open(), open()
		if err := errors.Join(silent.CloseRead(), ended.CloseWrite()); err != nil {
			l.Error(err)
		}
		l.after(time.Second)
		if n := len(c.peer.accepted); n != 1 {
			l.Errorf("%d streams were heard of, want the one that ended", n)
		}
		s, err := c.peer.AcceptStream()
		if err != nil {
			l.Fatal(err)
		}
		if n, err := s.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			l.Errorf("%d bytes, %v", n, err)
		}
		if err := errors.Join(silent.Close(), ended.Close(), s.Close()); err != nil {
			l.Error(err)
		}
	})
}

// A reset frees who waits on either side, a writer as well as a reader, each with the code
// and with who it was.
func TestResetFreesWaiters(t *testing.T) {
	const code = 9
	inLab(t, "", Config{Window: PacketSize, Link: Link{Latency: time.Millisecond}}, func(l *lab) {
		near, far := l.near, l.near.peer
		got := make(map[string]chan error)
		wait := func(name string, f func() error) {
			c := make(chan error, 1)
			got[name] = c
			go func() { c <- f() }()
		}
		l.send(near, 1) // so that the other side knows it
		l.after(time.Second)
		quiet := newStreams(near.conn)
		wait("our read", func() error { _, err := quiet.Read(make([]byte, 1)); return err })
		wait("our write", func() error { _, err := near.Write(make([]byte, 10*sendBuffer)); return err })
		wait("their write", func() error { _, err := far.Write(make([]byte, 10*sendBuffer)); return err })
		l.after(time.Second)
		if err := errors.Join(near.ResetWithError(code), quiet.ResetWithError(code)); err != nil {
			l.Error(err)
		}
		l.after(time.Second)
		for name, c := range got {
			var e *network.StreamError
			if err := <-c; !errors.As(err, &e) || e.ErrorCode != code || e.Remote != (name == "their write") {
				l.Errorf("%s: %v", name, err)
			}
		}
		if err := errors.Join(near.Reset(), far.Reset()); err != nil {
			l.Errorf("reset once more: %v", err)
		}
		if _, err := far.Read(make([]byte, 1)); err == nil {
			l.Error("what was there before the reset can be read")
		}
	})
}

// Only the first reset counts, on each side its own if both say it at once.
func TestResetsCross(t *testing.T) {
	inLab(t, "", Config{Link: Link{Latency: time.Millisecond}}, func(l *lab) {
		near, far := l.near, l.near.peer
		l.send(near, 1)
		l.after(time.Second)
		if err := errors.Join(near.ResetWithError(1), far.ResetWithError(2), near.ResetWithError(3)); err != nil {
			l.Error(err)
		}
		l.after(time.Second)
		for want, s := range map[network.StreamErrorCode]*stream{1: near, 2: far} {
			var e *network.StreamError
			if _, err := s.Write([]byte{1}); !errors.As(err, &e) || e.ErrorCode != want || e.Remote {
				l.Errorf("%v, want our own code %d", err, want)
			}
		}
	})
}

// When a connection breaks, streams that had been said whole can be read to their end;
// one that was cut short says that it was.
func TestConnectionEndsStreams(t *testing.T) {
	for name, end := range map[string]func(l *lab, c *conn){
		"closed": func(l *lab, c *conn) { l.Log(c.Close()) },
		"killed": func(l *lab, c *conn) { l.net.Kill(0) },
	} {
		inLab(t, name, Config{Link: Link{Latency: time.Millisecond}}, func(l *lab) {
			c := l.near.conn
			whole, cut := newStreams(c), l.near
			l.send(whole, 3*PacketSize)
			l.send(cut, 3*PacketSize)
			if err := whole.CloseWrite(); err != nil {
				l.Error(err)
			}
			end(l, c)
			l.after(time.Second)
			if got, err := readAll(whole.peer, 1000); err != nil || len(got) != 3*PacketSize {
				l.Errorf("of the one that was whole %d bytes, %v", len(got), err)
			}
			var e *network.ConnError
			if got, err := readAll(cut.peer, 1000); !errors.As(err, &e) || !e.Remote || len(got) != 0 {
				l.Errorf("of the one that was cut short %d bytes, %v", len(got), err)
			}
			if _, err := cut.peer.Write([]byte{1}); !errors.As(err, &e) {
				l.Errorf("written after the end: %v", err)
			}
			if len(c.host.conns) != 0 || len(c.peer.host.conns) != 0 {
				l.Error("a host still has the connection")
			}
		})
	}
}

// Nobody waits for a connection that has ended: neither who accepts nor who writes.
func TestConnectionFreesWaiters(t *testing.T) {
	inLab(t, "", Config{Window: PacketSize}, func(l *lab) {
		errs := make(chan error, 3)
		go func() { _, err := l.near.Write(make([]byte, 10*sendBuffer)); errs <- err }()
		go func() { _, err := l.near.Read(make([]byte, 1)); errs <- err }()
		go func() { _, err := l.near.conn.AcceptStream(); errs <- err }()
		l.after(time.Second)
		const code = 5
		if err := l.near.peer.conn.CloseWithError(code); err != nil {
			l.Error(err)
		}
		l.after(time.Second)
		for range 3 {
			var e *network.ConnError
			if err := <-errs; !errors.As(err, &e) || !e.Remote || e.ErrorCode != code {
				l.Errorf("%v, want the other side's code", err)
			}
		}
	})
}

// Whatever both sides do with some streams at once, no byte is changed, lost before an
// end, or doubled, and a stream that ends well ends on both sides.
func TestManyStreamsAtOnce(t *testing.T) {
	const streams = 40
	link := Link{Latency: 3 * time.Millisecond, Jitter: time.Millisecond, Loss: 0.05}
	for seed := range uint64(5) {
		inLab(t, "", Config{Seed: seed, Link: link, Port: Port{Up: 1e7, Down: 5e6}, Window: 3 * PacketSize}, func(l *lab) {
			random := rand.New(rand.NewPCG(seed, 1))
			near, far := l.near.conn, l.near.peer.conn
			echoed := make(chan error, streams)
			go func() {
				for range streams {
					s, err := far.AcceptStream()
					if err != nil {
						l.Error(err)
						return
					}
					go func() {
						_, err := io.Copy(s, s)
						echoed <- errors.Join(err, s.CloseWrite())
					}()
				}
			}()
			for range streams {
				s, err := near.OpenStream(l.Context())
				if err != nil {
					l.Fatal(err)
				}
				want, piece := numbered(1+random.IntN(4*PacketSize)), 1+random.IntN(2*PacketSize)
				go func() {
					for p := want; len(p) > 0; p = p[min(piece, len(p)):] {
						if _, err := s.Write(p[:min(piece, len(p))]); err != nil {
							l.Error(err)
						}
					}
					if err := s.CloseWrite(); err != nil {
						l.Error(err)
					}
				}()
				go func() {
					if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, want) {
						l.Errorf("%d bytes of %d came back, %v", len(got), len(want), err)
					}
				}()
			}
			for range streams {
				if err := <-echoed; err != nil {
					l.Error(err)
				}
			}
			l.after(time.Minute)
			synctest.Wait()
			if n := len(near.open()) + len(far.open()); n != 1 { // that of the lab
				l.Errorf("%d ends are still known", n)
			}
		})
	}
}
