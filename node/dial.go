package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"github.com/multiformats/go-multistream"
)

// tcpHeadStart is how long QUIC waits for TCP: a handshake on a near network.
const tcpHeadStart = 250 * time.Millisecond

// nearHeadStart is how long the network waits for memory: a handshake on a machine
// that is very busy. A dial that fails is followed by the next at once.
const nearHeadStart = 2 * time.Second

// DialError says in one line why a peer cannot be reached.
type DialError struct {
	Peer peer.ID
	Addr multiaddr.Multiaddr // the address tried that tells most; nil if there was none
	Err  error
}

func (e *DialError) Error() string {
	if e.Addr == nil {
		return fmt.Sprintf("node: cannot dial %s: %s", e.Peer, reason(e.Err))
	}
	return fmt.Sprintf("node: cannot dial %s at %s: %s", e.Peer, e.Addr, reason(e.Err))
}

// Reason is the innermost cause in words, such as "connection refused".
func (e *DialError) Reason() string { return reason(e.Err) }

func (e *DialError) Unwrap() error { return e.Err }

// Connect makes sure that there is a connection to the peer. It dials at once
// even if an earlier attempt has just failed: libp2p's own back-off, of five
// seconds and more, is for those who dial without a plan of their own.
func (n *Node) Connect(ctx context.Context, p peer.AddrInfo) error {
	if n.Connected(p.ID) {
		return nil
	}
	n.host.Peerstore().AddAddrs(p.ID, p.Addrs, peerstore.RecentlyConnectedAddrTTL)
	ctx = n.wanted(ctx, p.ID)
	c, err := n.host.Network().DialPeer(ctx, p.ID)
	if err == nil {
		err = n.host.Connect(ctx, peer.AddrInfo{ID: p.ID}) // also waits until the two have told each other what they speak
	}
	if c != nil && c.IsClosed() && !n.Connected(p.ID) {
		err = whyClosed(ctx, c)
	}
	if err != nil {
		return dialError(p.ID, err)
	}
	n.settle(ctx, p.ID)
	return nil
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
	if n.ctx.Err() != nil {
		return nil, fmt.Errorf("node: %w", ErrClosed)
	}
	n.settle(ctx, p)
	raw, err := n.host.NewStream(n.wanted(ctx, p), p, proto)
	var unknown multistream.ErrNotSupported[protocol.ID]
	switch {
	case err == nil:
		return newStream(ctx, raw, &n.tidy), nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &unknown):
		return nil, fmt.Errorf("node: %s does not speak %s: it runs something else, or another version", p, proto)
	}
	return nil, dialError(p, err)
}

// Protect keeps the connections to a peer from being trimmed, until Unprotect
// with the same tag.
func (n *Node) Protect(p peer.ID, tag string) { n.host.ConnManager().Protect(p, tag) }

// Unprotect is the reverse of Protect.
func (n *Node) Unprotect(p peer.ID, tag string) { n.host.ConnManager().Unprotect(p, tag) }

func dialError(p peer.ID, err error) error {
	e := &DialError{Peer: p, Err: refusalOf(err)}
	var dial *swarm.DialError
	if errors.As(err, &dial) && len(dial.DialErrors) > 0 {
		// A peer on another machine also announces its loopback addresses; what
		// happened there, which is here, says nothing.
		tell := dial.DialErrors[0]
		for _, d := range dial.DialErrors {
			if refused(d.Cause) || manet.IsIPLoopback(tell.Address) && !manet.IsIPLoopback(d.Address) {
				tell = d
			}
		}
		e.Addr, e.Err = tell.Address, refusalOf(tell.Cause)
	}
	return e
}

// reason shortens libp2p's chain of prefixes to the part a person acts on.
func reason(err error) string {
	var no syscall.Errno
	switch {
	case errors.As(err, &no):
		return no.Error()
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, swarm.ErrNoAddresses), errors.Is(err, swarm.ErrNoGoodAddresses):
		return "no address that this node can dial"
	}
	text := err.Error()
	if i := strings.Index(text, "peer id mismatch"); i >= 0 {
		text = text[i:]
	}
	return strings.ReplaceAll(text, "\n", " ")
}

// isLocal reports whether an address leads from nowhere but this machine. One of
// another machine is not dialled at all: its transport knows it.
func isLocal(a multiaddr.Multiaddr) bool {
	t := transportOf(a)
	return t == Shm || t == Memory
}

// nearFirst gives what leads through memory a head start over the network.
func nearFirst(next network.DialRanker) network.DialRanker {
	return func(addrs []multiaddr.Multiaddr) []network.AddrDelay {
		var near []network.AddrDelay
		var far []multiaddr.Multiaddr
		for _, a := range addrs {
			if isLocal(a) {
				near = append(near, network.AddrDelay{Addr: a})
			} else {
				far = append(far, a)
			}
		}
		then := next(far)
		if len(near) > 0 {
			for i := range then {
				then[i].Delay += nearHeadStart
			}
		}
		return append(near, then...)
	}
}

// tcpFirst gives TCP a head start over QUIC, which is the reverse of libp2p's
// ranking: see Config.Transports. Within a transport libp2p's order stands.
func tcpFirst(addrs []multiaddr.Multiaddr) []network.AddrDelay {
	var tcp, other []multiaddr.Multiaddr
	for _, a := range addrs {
		if transportOf(a) == TCP {
			tcp = append(tcp, a)
		} else {
			other = append(other, a)
		}
	}
	first, then := swarm.DefaultDialRanker(tcp), swarm.DefaultDialRanker(other)
	if len(first) > 0 {
		for i := range then {
			then[i].Delay += tcpHeadStart
		}
	}
	return slices.Concat(first, then)
}
