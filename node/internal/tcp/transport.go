package tcp

import (
	"context"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// dialTime bounds the dial of a connection, its handshakes not included.
const dialTime = 5 * time.Second

// A Transport dials and listens on TCP. New makes one.
type Transport struct {
	upgrader transport.Upgrader
	limits   network.ResourceManager
}

var (
	_ transport.Transport   = (*Transport)(nil)
	_ transport.DialUpdater = (*Transport)(nil)
)

// New makes the transport of one host, of what libp2p.Transport gives to constructors:
// the host's security layers and muxers, and its limits.
func New(u transport.Upgrader, limits network.ResourceManager) *Transport {
	if limits == nil {
		limits = &network.NullResourceManager{}
	}
	return &Transport{upgrader: u, limits: limits}
}

// Dial connects to a peer, which has to prove that it is p.
func (t *Transport) Dial(ctx context.Context, addr multiaddr.Multiaddr, p peer.ID) (transport.CapableConn, error) {
	return t.DialWithUpdates(ctx, addr, p, nil)
}

// DialWithUpdates is Dial, and tells when the peer's machine has answered, which keeps
// libp2p from trying its other addresses.
func (t *Transport) DialWithUpdates(ctx context.Context, addr multiaddr.Multiaddr, p peer.ID, updates chan<- transport.DialUpdate) (transport.CapableConn, error) {
	scope, err := t.limits.OpenConnection(network.DirOutbound, true, addr)
	if err != nil {
		return nil, fmt.Errorf("tcp: no room for a connection to %s: %w", addr, err)
	}
	raw, err := dial(ctx, scope, addr, p)
	if err != nil {
		scope.Done()
		return nil, err
	}
	if updates != nil {
		select {
		case updates <- transport.DialUpdate{Kind: transport.UpdateKindHandshakeProgressed, Addr: addr}:
		default: // the dial does not wait for who watches it
		}
	}
	direction := network.DirOutbound
	if simultaneous, client, _ := network.GetSimultaneousConnect(ctx); simultaneous && !client {
		direction = network.DirInbound
	}
	return t.upgrader.Upgrade(ctx, t, newWire(raw), direction, p, scope)
}

// dial makes the raw connection.
func dial(ctx context.Context, scope network.ConnManagementScope, addr multiaddr.Multiaddr, p peer.ID) (manet.Conn, error) {
	if err := scope.SetPeer(p); err != nil {
		return nil, fmt.Errorf("tcp: no room for a connection to %s: %w", p, err)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	var d manet.Dialer
	raw, err := d.DialContext(ctx, addr)
	if err != nil {
		return nil, err // net's own error says what, whom and why
	}
	return raw, nil
}

// CanDial reports whether an address is /ip4 or /ip6, perhaps with a zone, then /tcp
// and nothing more.
func (t *Transport) CanDial(addr multiaddr.Multiaddr) bool {
	codes := addr.Protocols()
	if len(codes) == 3 && codes[0].Code == multiaddr.P_IP6ZONE {
		codes = codes[1:]
	}
	return len(codes) == 2 && codes[1].Code == multiaddr.P_TCP &&
		(codes[0].Code == multiaddr.P_IP4 || codes[0].Code == multiaddr.P_IP6)
}

// Listen takes connections on an address. It fails if another process or transport
// listens there: ports are never shared, or the kernel would deal connections to
// either.
func (t *Transport) Listen(addr multiaddr.Multiaddr) (transport.Listener, error) {
	l, err := manet.Listen(addr)
	if err != nil {
		return nil, err
	}
	return t.upgrader.UpgradeGatedMaListener(t, wiring{t.upgrader.GateMaListener(l)}), nil
}

// wiring puts what a raw listener accepts on a wire.
type wiring struct{ transport.GatedMaListener }

func (l wiring) Accept() (manet.Conn, network.ConnManagementScope, error) {
	c, scope, err := l.GatedMaListener.Accept()
	if err != nil {
		return nil, nil, err
	}
	return newWire(c), scope, nil
}

// Protocols is TCP alone.
func (t *Transport) Protocols() []int { return []int{multiaddr.P_TCP} }

// Proxy is false: the transport dials what it is told to.
func (t *Transport) Proxy() bool { return false }

func (t *Transport) String() string { return "TCP" }
