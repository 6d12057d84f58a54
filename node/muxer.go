package node

import (
	"errors"
	"net"

	"peermesh/node/internal/tcp"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
)

// muxFrame bounds a yamux frame in bytes. libp2p's 64 KiB costs a third of the
// throughput; a frame much larger than this delays the heartbeats behind it.
const muxFrame = 256 << 10

// Window is how many bytes a TCP stream carries ahead of its reader; after the
// reader has caught up at least half of it is free. It is the product of
// 200 Mbit/s and a round trip of 40 ms.
//
// yamux would start at 256 KiB and double the window of a busy stream up to 16 MiB,
// but each time it doubles, go-yamux v5.1.0 tells the sender only of the new half
// and forgets what it was about to give back of the old one. The two then differ for
// good about what may be sent, and a stream whose sides write before they read can
// stop for ever. A window that starts at its limit never grows.
const Window = 1 << 20

// muxer is yamux with that window.
func muxer() network.Multiplexer {
	m := *yamux.DefaultTransport
	m.MaxMessageSize = muxFrame
	m.InitialStreamWindowSize, m.MaxStreamWindowSize = Window, Window
	return tcp.Batch(reserving{&m})
}

// A reserving muxer takes what a stream may hold from the limits of its peer. yamux
// takes 256 KiB for each, however large the window is that it then grants, and nothing for
// what its frames take beside their payload: see ledger.
type reserving struct{ network.Multiplexer }

func (r reserving) NewConn(c net.Conn, server bool, scope network.PeerScope) (network.MuxedConn, error) {
	if scope == nil {
		return r.Multiplexer.NewConn(c, server, nil)
	}
	l, err := newLedger(c, scope)
	if err != nil {
		return nil, err
	}
	m, err := r.Multiplexer.NewConn(l, server, windowScope{scope})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return m, nil
}

type windowScope struct{ network.PeerScope }

// BeginSpan is called for each stream.
func (s windowScope) BeginSpan() (network.ResourceScopeSpan, error) {
	span, err := s.PeerScope.BeginSpan()
	if err != nil {
		return nil, err
	}
	return windowSpan{span}, nil
}

type windowSpan struct{ network.ResourceScopeSpan }

// ReserveMemory is called once for each stream, whose window never grows.
func (s windowSpan) ReserveMemory(size int, prio uint8) error {
	return s.ResourceScopeSpan.ReserveMemory(max(size, Window), prio)
}
