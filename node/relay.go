package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/autorelay"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

const (
	// libp2p's relays cut a connection after two minutes or 128 KiB, because they
	// are for introductions between strangers. Ours carries a training run if it
	// must. The limits are there at all so that both ends know the connection for
	// a limited one, which libp2p uses only for those who ask for it.
	relayTime        = 30 * 24 * time.Hour
	relayData        = 16 << 40 // bytes, each way
	relayBuffer      = 32 << 10 // bytes, each way
	relayReservation = time.Hour

	// relayRetry is how soon a relay that was away is asked again.
	relayRetry = 5 * time.Second
	// punchReady bounds the wait for libp2p to be ready to punch holes, which it
	// itself looks for with pauses that double; punchLook is how often we look.
	punchReady, punchLook = 4 * time.Second, 20 * time.Millisecond
	// quicHeadStart is how much longer TCP waits for QUIC behind a NAT.
	quicHeadStart = time.Second
	// punchWait is how long the first stream to a peer waits for a direct
	// connection after there is one through a relay. Streams do not move, and
	// those of a world stay for its whole life.
	punchWait = 2 * time.Second
	// lingerWait bounds how long a relay that closes stays for others to part through
	// it, and lingerLook is how often it looks.
	lingerWait, lingerLook = time.Second, 5 * time.Millisecond
)

// relaying is what a node does about peers that cannot be dialled.
type relaying struct {
	serve, use bool
	probe      bool // with AutoNAT, whether this node's own addresses can be dialled
	peers      int
	via        []multiaddr.Multiaddr // this node's addresses at the relays
	relays     []peer.AddrInfo
	listening  chan struct{} // closed when the node does
}

func (c Config) relaying(a *access) (relaying, error) {
	r := relaying{serve: c.Relay, use: c.NAT, peers: c.Peers, listening: make(chan struct{})}
	if r.peers == 0 {
		r.peers = DefaultPeers
	}
	// AutoNAT dials back from an identity of the moment, which is on no list and
	// whose transports know no secret.
	r.probe = (r.serve || r.use) && a.open()
	switch {
	case c.Relay && c.NAT:
		return relaying{}, errors.New("node: Relay is for a node that others can dial, NAT for one that they cannot: choose one")
	case len(c.Relays) > 0 && !c.NAT:
		return relaying{}, errors.New("node: Relays are for a node with NAT set")
	}
	at := map[peer.ID]int{}
	for _, s := range c.Relays {
		info, err := ParseAddr(s)
		if err != nil {
			return relaying{}, fmt.Errorf("node: relay: %w", err)
		}
		r.via = append(r.via, circuit(info))
		if i, ok := at[info.ID]; ok {
			r.relays[i].Addrs = append(r.relays[i].Addrs, info.Addrs...)
			continue
		}
		at[info.ID] = len(r.relays)
		r.relays = append(r.relays, info)
	}
	return r, nil
}

// circuit is the address of whoever has a reservation at the relay.
func circuit(relay peer.AddrInfo) multiaddr.Multiaddr {
	return relay.Addrs[0].Encapsulate(multiaddr.StringCast("/p2p/" + relay.ID.String() + "/p2p-circuit"))
}

// options turn on what is asked for and the rest off.
func (r relaying) options() []libp2p.Option {
	var options []libp2p.Option
	if r.probe {
		options = append(options, libp2p.EnableAutoNATv2())
	}
	if !r.use {
		options = append(options, libp2p.DisableRelay(), libp2p.DisableIdentifyAddressDiscovery())
	}
	options = append(options, libp2p.ForceReachabilityPrivate()) // keeps AutoNAT's first version from probing
	if !r.use {
		return options
	}
	options = append(options, libp2p.EnableRelay(), libp2p.EnableHolePunching(),
		// AutoRelay adds this node's address at a relay, but only if it is public. To
		// add those here as well would make libp2p think that it can be dialled.
		libp2p.AddrsFactory(func(addrs []multiaddr.Multiaddr) []multiaddr.Multiaddr {
			return append(addrs, slices.DeleteFunc(slices.Clone(r.via), manet.IsPublicAddr)...)
		}))
	if len(r.relays) > 0 {
		n := len(r.relays)
		options = append(options, libp2p.EnableAutoRelayWithPeerSource(r.source,
			autorelay.WithMaxCandidates(n), autorelay.WithMinCandidates(n), autorelay.WithNumRelays(n),
			autorelay.WithBootDelay(0), autorelay.WithBackoff(relayRetry), autorelay.WithMinInterval(relayRetry)))
	}
	return options
}

// source gives libp2p the relays once this node listens. A connection by QUIC from
// before that would leave from another port, to which no hole leads.
func (r relaying) source(ctx context.Context, n int) <-chan peer.AddrInfo {
	found := make(chan peer.AddrInfo, len(r.relays))
	go func() {
		defer close(found)
		select {
		case <-r.listening:
		case <-ctx.Done():
			return
		}
		for _, relay := range r.relays[:min(n, len(r.relays))] {
			found <- relay
		}
	}()
	return found
}

// start begins to serve as a relay, if that is wanted. libp2p's own switch for it
// would wait for proof that this node can be dialled.
func (r relaying) start(h host.Host) (io.Closer, error) {
	if !r.serve {
		return nil, nil
	}
	s, err := relay.New(h, relay.WithResources(r.resources()),
		// Relays in a private network are not only reached at public addresses.
		relay.WithReservationAddressFilter(func(multiaddr.Multiaddr) bool { return true }))
	if err != nil {
		return nil, fmt.Errorf("node: cannot relay: %w", err)
	}
	return s, nil
}

// linger waits until nobody is connected through this relay any more. Peers of a world end
// at about the same time, and their farewells to each other may be on the way.
func (n *Node) linger() {
	look := time.NewTicker(lingerLook)
	defer look.Stop()
	wait := time.NewTimer(lingerWait)
	defer wait.Stop()
	for n.carries() {
		select {
		case <-look.C:
		case <-wait.C:
			return
		}
	}
}

// carries reports whether two peers are connected through this relay: it has then asked
// the one that was called to take the connection, on a stream that carries it from then on.
func (n *Node) carries() bool {
	return slices.ContainsFunc(n.host.Network().Conns(), func(c network.Conn) bool {
		return slices.ContainsFunc(c.GetStreams(), func(s network.Stream) bool {
			return s.Protocol() == proto.ProtoIDv2Stop && s.Stat().Direction == network.DirOutbound
		})
	})
}

// punches reports whether holes can be punched: only a relay on the internet can
// tell a node its address there.
func (r relaying) punches() bool {
	for _, a := range r.via {
		if manet.IsPublicAddr(a) {
			return true
		}
	}
	return false
}

// prepare waits until this node has an address at a relay, and has been told its
// own on the internet, but not for long: it may have none. libp2p punches no hole
// for connections from before that.
func (r relaying) prepare(ctx context.Context, h host.Host) {
	close(r.listening)
	if !r.punches() {
		return
	}
	look := time.NewTicker(punchLook)
	defer look.Stop()
	wait := time.NewTimer(punchReady)
	defer wait.Stop()
	for !slices.Contains(h.Mux().Protocols(), holepunch.Protocol) || !slices.ContainsFunc(h.Addrs(), isRelayed) {
		select {
		case <-look.C:
		case <-wait.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// resources let every expected peer have a reservation, all behind one address
// if need be, and a connection to every other.
func (r relaying) resources() relay.Resources {
	return relay.Resources{
		Limit:           &relay.RelayLimit{Duration: relayTime, Data: relayData},
		ReservationTTL:  relayReservation,
		MaxReservations: 2 * r.peers, MaxReservationsPerIP: 2 * r.peers, MaxReservationsPerASN: 2 * r.peers,
		MaxReservationsPerPeer: 1,
		MaxCircuits:            2 * r.peers,
		BufferSize:             relayBuffer,
	}
}

// ranker is the order in which addresses are dialled.
func (r relaying) ranker() network.DialRanker {
	if r.use {
		return nearFirst(quicFirst)
	}
	return nearFirst(tcpFirst)
}

// quicFirst is for a node behind a NAT, and all but libp2p's own order: QUIC first
// and relays last. TCP waits longer, because it is the connection to a relay by
// QUIC that tells where a hole can be punched.
func quicFirst(addrs []multiaddr.Multiaddr) []network.AddrDelay {
	ranked := swarm.DefaultDialRanker(addrs)
	is := func(a multiaddr.Multiaddr, transport string) bool {
		return transportOf(a) == transport && !isRelayed(a)
	}
	if slices.ContainsFunc(addrs, func(a multiaddr.Multiaddr) bool { return is(a, QUIC) }) {
		for i, a := range ranked {
			if is(a.Addr, TCP) {
				ranked[i].Delay += quicHeadStart
			}
		}
	}
	return ranked
}

// Relayed reports whether all that connects this node to the peer goes through a
// relay. It does not hold of a peer without a connection.
func (n *Node) Relayed(p peer.ID) bool {
	conns := n.host.Network().ConnsToPeer(p)
	for _, c := range conns {
		if !isRelayed(c.RemoteMultiaddr()) {
			return false
		}
	}
	return len(conns) > 0
}

func isRelayed(a multiaddr.Multiaddr) bool {
	_, err := a.ValueForProtocol(multiaddr.P_CIRCUIT)
	return err == nil
}

// wanted is ctx for a dial or a stream that is wanted now. Only a node that is
// behind a NAT, and says so, will have it through a relay; others have no transport
// that could.
func (n *Node) wanted(ctx context.Context) context.Context {
	if !n.nat {
		return ctx
	}
	return network.WithAllowLimitedConn(ctx, "a member is wanted now")
}

// settle gives libp2p time to punch a hole if the peer has been reached through a
// relay just now.
func (n *Node) settle(ctx context.Context, p peer.ID) {
	if !n.punches || !n.Relayed(p) {
		return
	}
	direct := make(chan struct{}, 1)
	watch := &network.NotifyBundle{ConnectedF: func(_ network.Network, c network.Conn) {
		if c.RemotePeer() == p && !isRelayed(c.RemoteMultiaddr()) {
			select {
			case direct <- struct{}{}:
			default:
			}
		}
	}}
	n.host.Network().Notify(watch)
	defer n.host.Network().StopNotify(watch)
	first := time.Now()
	for _, c := range n.host.Network().ConnsToPeer(p) {
		if !isRelayed(c.RemoteMultiaddr()) {
			return
		}
		if opened := c.Stat().Opened; opened.Before(first) {
			first = opened
		}
	}
	wait := time.NewTimer(time.Until(first.Add(punchWait)))
	defer wait.Stop()
	select {
	case <-direct:
	case <-wait.C:
	case <-ctx.Done():
	case <-n.ctx.Done():
	}
}
