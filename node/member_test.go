package node

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
)

// memoryOf is what the streams of a peer are said to hold.
func memoryOf(t *testing.T, n *Node, p peer.ID) (held int64) {
	t.Helper()
	err := n.host.Network().ResourceManager().ViewPeer(p, func(s network.PeerScope) error {
		held = s.Stat().Memory
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return held
}

// sink has a node take streams, say so with a byte, and read nothing of them.
func sink(t *testing.T, n *Node) {
	t.Helper()
	stop, err := n.Handle(t.Context(), "/sink", func(s *Stream) {
		s.Write([]byte{1})
		<-s.ctx.Done()
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
}

// A member that turns bad opens streams without end and fills them, and nobody
// reads: it is held to MaxPeerStreams, each counts with a whole window, what it
// really takes is no more, and another member is served as before.
func TestEndlessStreams(t *testing.T) {
	const filled = 48
	c := Config{Transports: []string{TCP}, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Secret: ours, Peers: 4}
	a, _, good := echoing(t, c)
	sink(t, a)
	bad := start(t, c)
	if err := bad.Connect(t.Context(), info(t, a)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	heap := heapSize()
	opened := 0
	for ; opened <= MaxPeerStreams; opened++ {
		s, err := bad.Open(ctx, a.ID(), "/sink")
		if err != nil {
			break
		}
		defer s.Reset(ErrGaveUp)
		if _, err := s.Write([]byte("x")); err != nil {
			break
		}
		if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
			break
		}
		if opened >= filled {
			continue
		}
		s.SetWriteDeadline(time.Now().Add(10 * time.Second)) // the protocol's name takes some of the window
		if n, err := s.Write(make([]byte, Window-64)); err != nil {
			t.Fatalf("stream %d took %d bytes: %v", opened, n, err)
		}
	}
	if opened > MaxPeerStreams {
		t.Errorf("%d streams of one peer", opened)
	}
	held := memoryOf(t, a, bad.ID())
	if opened < MaxPeerStreams-8 || held < int64(opened)*Window || held > peerMemory {
		t.Errorf("%d streams hold %d MiB", opened, held>>20)
	}
	if got := heapSize(); got > heap+2*filled*Window+64<<20 {
		t.Errorf("%d MiB in use for %d windows, %d before", got>>20, filled, heap>>20)
	}
	t.Logf("%d streams hold %d MiB", opened, held>>20)
	rounds(t, good, 1, 1024)
}

// A member that does not read holds up whoever writes to it, after one window, and
// nobody else: not even other streams of the same connection.
func TestSlowReader(t *testing.T) {
	overAll(t, func(t *testing.T, c Config) {
		slow := start(t, c)
		sink(t, slow)
		other, n, echo := echoing(t, c)
		if err := n.Connect(t.Context(), info(t, slow)); err != nil {
			t.Fatal(err)
		}
		s, err := n.Open(t.Context(), slow.ID(), "/sink")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Reset(ErrGaveUp)
		written := make(chan error, 1)
		go func() {
			_, err := s.Write(make([]byte, 32<<20)) // more than any transport takes ahead
			written <- err
		}()
		rounds(t, echo, 4, 64<<10)
		stop, err := slow.Handle(t.Context(), "/echo", func(s *Stream) {
			defer s.Close()
			io.Copy(s, s)
		})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		beside, err := n.Open(t.Context(), slow.ID(), "/echo")
		if err != nil {
			t.Fatal(err)
		}
		defer beside.Close()
		rounds(t, beside, 4, 64<<10)
		select {
		case err := <-written:
			t.Errorf("32 MiB went to a peer that reads nothing: %v", err)
		default:
		}
		s.Reset(ErrGaveUp)
		if err := <-written; !errors.Is(err, ErrGaveUp) {
			t.Error(err)
		}
		if !other.Connected(n.ID()) {
			t.Error("another peer has lost its connection")
		}
	})
}

// A tap is a muxer that lets a test write below it, on the secured connection.
type tap struct {
	network.Multiplexer
	conns chan net.Conn
}

func (m tap) NewConn(c net.Conn, server bool, scope network.PeerScope) (network.MuxedConn, error) {
	m.conns <- c
	return m.Multiplexer.NewConn(c, server, scope)
}

// frame is a header of yamux: version 0, kind, flags, stream and length.
func frame(kind byte, flags uint16, stream, length uint32) []byte {
	p := binary.BigEndian.AppendUint16([]byte{0, kind}, flags)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(p, stream), length)
}

// A member whose frames claim giant lengths, below all protocols, loses its
// connection before anything is allocated for them.
func TestGiantFrames(t *testing.T) {
	const data, window, syn = 0, 1, 1
	for name, attack := range map[string][]byte{
		"data":          append(frame(window, syn, 1001, 0), frame(data, 0, 1001, 0xffffffff)...),
		"first data":    frame(data, syn, 1001, 0x7fffffff),
		"beyond window": append(frame(window, syn, 1001, 0), frame(data, 0, 1001, Window+1)...),
		"kind":          frame(99, 0, 1001, 0),
		"flood of streams": func() (p []byte) {
			for i := range uint32(4 * MaxPeerStreams) {
				p = append(p, frame(window, syn, 1001+2*i, 0)...)
			}
			return p
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			a, _, good := echoing(t, Config{Transports: []string{TCP}, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Peers: 4})
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
			c := bad.Network().ConnsToPeer(a.ID())[0]
			heap := heapSize()
			if _, err := (<-raw).Write(attack); err != nil {
				t.Fatal(err)
			}
			if name == "flood of streams" {
				rounds(t, good, 4, 1024)
				if held := memoryOf(t, a, bad.ID()); held > peerMemory {
					t.Errorf("they hold %d MiB", held>>20)
				}
			} else {
				for { // until it is hung up on
					if _, err := c.NewStream(t.Context()); err != nil && c.IsClosed() {
						break
					}
				}
			}
			if got := heapSize(); got > heap+64<<20 {
				t.Errorf("%d MiB in use, %d before", got>>20, heap>>20)
			}
			rounds(t, good, 1, 1024)
		})
	}
}
