package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/protocol/identify"
	"github.com/multiformats/go-multiaddr"
	"github.com/multiformats/go-multistream"
)

// tcpHeadStart is how long QUIC waits for TCP: a handshake on a near network.
const tcpHeadStart = 250 * time.Millisecond

// nearHeadStart is how long the network waits for memory: a handshake on a machine
// that is very busy. A dial that fails is followed by the next at once.
const nearHeadStart = 2 * time.Second

// Connect makes sure that there is a connection to the peer. It dials at once
// even if an earlier attempt has just failed: libp2p's own back-off, of five
// seconds and more, is for those who dial without a plan of their own.
func (n *Node) Connect(ctx context.Context, p peer.AddrInfo) error {
	if n.Connected(p.ID) {
		return nil
	}
	ctx, done, err := n.calling(ctx)
	if err != nil {
		return err
	}
	defer done()
	n.host.Peerstore().AddAddrs(p.ID, p.Addrs, peerstore.RecentlyConnectedAddrTTL)
	c, err := n.dial(n.wanted(ctx), p.ID)
	if err == nil {
		err = n.identified(ctx, c)
	}
	if c != nil && c.IsClosed() && !n.Connected(p.ID) {
		err = whyClosed(ctx, c)
	}
	switch {
	case err == nil:
		n.settle(ctx, p.ID)
		return nil
	case n.ctx.Err() != nil:
		return fmt.Errorf("node: %w", ErrClosed)
	}
	return dialError(p.ID, err)
}

// calling begins a call that may dial. It ends with the node, which does not close
// its host while one goes on: libp2p, when it closes, takes its transports away from
// under the dials that are on their way. The caller must call done.
func (n *Node) calling(ctx context.Context) (_ context.Context, done func(), err error) {
	if !n.calls.enter() {
		return nil, nil, fmt.Errorf("node: %w", ErrClosed)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(n.ctx, func() { cancel(context.Cause(n.ctx)) })
	return ctx, func() {
		unlink()
		cancel(nil)
		n.calls.leave()
	}, nil
}

// dial is libp2p's, without its back-off. A dial of someone else that fails at the
// same moment can bring that back once.
//
// network.WithForceDirectDial would do the same, but libp2p v0.52.0 crashes on it if
// the host closes meanwhile: swarm.nonProxyAddr asks a transport that is gone.
func (n *Node) dial(ctx context.Context, p peer.ID) (network.Conn, error) {
	s, ok := n.host.Network().(interface{ Backoff() *swarm.DialBackoff })
	if !ok {
		return n.host.Network().DialPeer(ctx, p)
	}
	for again := false; ; again = true {
		s.Backoff().Clear(p)
		c, err := n.host.Network().DialPeer(ctx, p)
		if again || err == nil || !errors.Is(err, swarm.ErrDialBackoff) {
			return c, err
		}
	}
}

// identified waits until the two sides have told each other what they speak.
func (n *Node) identified(ctx context.Context, c network.Conn) error {
	h, ok := n.host.(interface{ IDService() identify.IDService })
	if !ok {
		return nil
	}
	select {
	case <-h.IDService().IdentifyWait(c):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// whyClosed is the reason for which the other side has closed a connection.
func whyClosed(ctx context.Context, c network.Conn) error {
	s, err := c.NewStream(ctx)
	if err == nil {
		err = errors.Join(network.ErrReset, s.Reset())
	}
	return err
}

// Connected reports whether there is a connection to the peer, be it through a
// relay if this node is behind a NAT. After a peer's sudden death it may hold for
// a moment longer.
func (n *Node) Connected(p peer.ID) bool {
	is := n.host.Network().Connectedness(p)
	return is == network.Connected || is == network.Limited && n.nat
}

// Open opens a stream to a peer and ties it to ctx, for its whole life.
func (n *Node) Open(ctx context.Context, p peer.ID, proto protocol.ID) (*Stream, error) {
	call, done, err := n.calling(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	n.settle(call, p)
	wanted := n.wanted(call)
	if !n.Connected(p) {
		if _, err := n.dial(wanted, p); err != nil {
			return nil, n.openError(ctx, p, proto, err)
		}
	}
	raw, err := n.host.NewStream(wanted, p, proto)
	if err != nil {
		return nil, n.openError(ctx, p, proto, err)
	}
	return newStream(ctx, raw, &n.tidy), nil
}

func (n *Node) openError(ctx context.Context, p peer.ID, proto protocol.ID, err error) error {
	var unknown multistream.ErrNotSupported[protocol.ID]
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case n.ctx.Err() != nil:
		return fmt.Errorf("node: %w", ErrClosed)
	case errors.As(err, &unknown):
		return fmt.Errorf("node: %s does not speak %s: it runs something else, or another version", p, proto)
	}
	return dialError(p, err)
}

// Protect keeps the connections to a peer from being trimmed, until Unprotect
// with the same tag.
func (n *Node) Protect(p peer.ID, tag string) { n.host.ConnManager().Protect(p, tag) }

// Unprotect is the reverse of Protect.
func (n *Node) Unprotect(p peer.ID, tag string) { n.host.ConnManager().Unprotect(p, tag) }

// isLocal reports whether an address leads from nowhere but this machine. One of
// another machine is not dialled at all: its transport knows it.
func isLocal(a multiaddr.Multiaddr) bool {
	t := transportOf(a)
	return t == Shm || t == Memory
}

// headStart ranks the addresses of one kind, and has the others wait for them, if there
// are any.
func headStart(kind func(multiaddr.Multiaddr) bool, time time.Duration, these, others network.DialRanker) network.DialRanker {
	return func(addrs []multiaddr.Multiaddr) []network.AddrDelay {
		var first, rest []multiaddr.Multiaddr
		for _, a := range addrs {
			if kind(a) {
				first = append(first, a)
			} else {
				rest = append(rest, a)
			}
		}
		then := others(rest)
		if len(first) > 0 {
			for i := range then {
				then[i].Delay += time
			}
		}
		return slices.Concat(these(first), then)
	}
}

// nearFirst gives what leads through memory a head start over the network.
func nearFirst(next network.DialRanker) network.DialRanker {
	return headStart(isLocal, nearHeadStart, atOnce, next)
}

// atOnce dials all addresses without a pause.
func atOnce(addrs []multiaddr.Multiaddr) []network.AddrDelay {
	var all []network.AddrDelay
	for _, a := range addrs {
		all = append(all, network.AddrDelay{Addr: a})
	}
	return all
}

// tcpFirst gives TCP a head start over QUIC, which is the reverse of libp2p's
// ranking: see Config.Transports. Within a transport libp2p's order stands.
var tcpFirst = headStart(func(a multiaddr.Multiaddr) bool { return transportOf(a) == TCP }, tcpHeadStart,
	swarm.DefaultDialRanker, swarm.DefaultDialRanker)
