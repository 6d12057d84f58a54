package tcp

import (
	"context"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/pnet"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"peermesh/node/internal/mux"
)

// MuxID names our muxer to peers; those that do not know it get yamux.
const MuxID = "/peermesh/mux/1"

// dialTime bounds the dial of one connection, as in libp2p's own transport.
const dialTime = 5 * time.Second

// A Transport dials and listens on TCP. Use New.
type Transport struct {
	upgrader transport.Upgrader
	limits   network.ResourceManager
	dials    dials // of stripes, under way
}

var (
	_ transport.Transport   = (*Transport)(nil)
	_ transport.DialUpdater = (*Transport)(nil)
)

// Option changes a transport for tests.
type Option func(*options)

type options struct {
	security []string
	muxers   []upgrader.StreamMuxer
}

// New makes the transport of one host, as libp2p.Transport wants it. It has security
// layers and muxers of its own, because a muxer that needs a Wire below it must not
// be offered on a relayed connection. psk and gate may be nil.
func New(key crypto.PrivKey, psk pnet.PSK, limits network.ResourceManager, gate connmgr.ConnectionGater) (*Transport, error) {
	return newTransport(key, psk, limits, gate, muxers(), libp2ptls.ID, noise.ID)
}

// muxers are ours and yamux, for peers that do not have ours.
func muxers() []upgrader.StreamMuxer {
	return []upgrader.StreamMuxer{
		{ID: MuxID, Muxer: mux.New()},
		{ID: yamux.ID, Muxer: mux.Batch(Yamux())},
	}
}

func newTransport(key crypto.PrivKey, psk pnet.PSK, limits network.ResourceManager, gate connmgr.ConnectionGater,
	muxers []upgrader.StreamMuxer, security ...string) (*Transport, error) {
	var layers []sec.SecureTransport
	for _, id := range security {
		var layer sec.SecureTransport
		var err error
		switch id {
		case libp2ptls.ID:
			layer, err = libp2ptls.New(libp2ptls.ID, key, muxers)
		case noise.ID:
			layer, err = noise.New(noise.ID, key, muxers)
		}
		if err != nil {
			return nil, fmt.Errorf("tcp: %s: %w", id, err)
		}
		layers = append(layers, layer)
	}
	up, err := upgrader.New(layers, muxers, psk, limits, gate)
	if err != nil {
		return nil, fmt.Errorf("tcp: %w", err)
	}
	if limits == nil {
		limits = &network.NullResourceManager{}
	}
	return &Transport{upgrader: up, limits: limits}, nil
}

// Dial connects to a peer.
func (t *Transport) Dial(ctx context.Context, addr multiaddr.Multiaddr, p peer.ID) (transport.CapableConn, error) {
	return t.DialWithUpdates(ctx, addr, p, nil)
}

// DialWithUpdates is Dial, and tells when the peer's machine has answered, which keeps
// libp2p from trying others.
func (t *Transport) DialWithUpdates(ctx context.Context, addr multiaddr.Multiaddr, p peer.ID, updates chan<- transport.DialUpdate) (transport.CapableConn, error) {
	c, err := t.dial(ctx, addr, p, nil, updates)
	if err != nil {
		return nil, err
	}
	t.stripe(c, addr, p)
	return c, nil
}

// dial makes one secured connection; with a primary, as a stripe of it.
func (t *Transport) dial(ctx context.Context, addr multiaddr.Multiaddr, p peer.ID, primary *mux.Conn, updates chan<- transport.DialUpdate) (transport.CapableConn, error) {
	scope, err := t.limits.OpenConnection(network.DirOutbound, true, addr)
	if err != nil {
		return nil, fmt.Errorf("tcp: %w", err)
	}
	raw, err := dialRaw(ctx, scope, addr, p)
	if err != nil {
		scope.Done()
		return nil, err
	}
	if updates != nil {
		select {
		case updates <- transport.DialUpdate{Kind: transport.UpdateKindHandshakeProgressed, Addr: addr}:
		default: // the dial is not to wait for who watches it
		}
	}
	direction := network.DirOutbound
	if simultaneous, client, _ := network.GetSimultaneousConnect(ctx); simultaneous && !client {
		direction = network.DirInbound
	}
	return t.upgrader.Upgrade(ctx, t, mux.NewWire(raw, primary), direction, p, scope)
}

func dialRaw(ctx context.Context, scope network.ConnManagementScope, addr multiaddr.Multiaddr, p peer.ID) (manet.Conn, error) {
	if err := scope.SetPeer(p); err != nil {
		return nil, fmt.Errorf("tcp: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	var d manet.Dialer
	raw, err := d.DialContext(ctx, addr)
	if err != nil {
		return nil, err
	}
	tune(raw)
	return raw, nil
}

// CanDial reports whether an address is one of ours: /ip4 or /ip6, then /tcp.
func (t *Transport) CanDial(addr multiaddr.Multiaddr) bool { return canDial(addr) }

func canDial(addr multiaddr.Multiaddr) bool {
	protocols := addr.Protocols()
	if len(protocols) == 3 && protocols[0].Code == multiaddr.P_IP6ZONE {
		protocols = protocols[1:]
	}
	return len(protocols) == 2 && protocols[1].Code == multiaddr.P_TCP &&
		(protocols[0].Code == multiaddr.P_IP4 || protocols[0].Code == multiaddr.P_IP6)
}

// Listen takes connections on an address that nobody else listens on.
func (t *Transport) Listen(addr multiaddr.Multiaddr) (transport.Listener, error) {
	l, err := manet.Listen(addr)
	if err != nil {
		return nil, err
	}
	gated := t.upgrader.GateMaListener(l)
	return &listener{t.upgrader.UpgradeGatedMaListener(t, &wired{gated})}, nil
}

// Protocols is TCP.
func (t *Transport) Protocols() []int { return []int{multiaddr.P_TCP} }

// Proxy is false: the transport dials what it is told to.
func (t *Transport) Proxy() bool { return false }

func (t *Transport) String() string { return "TCP" }

// Close waits for dials of stripes under way.
func (t *Transport) Close() error {
	t.dials.close()
	return nil
}

// Yamux is libp2p's yamux with large frames, and with windows that do not grow: see
// mux.Window.
func Yamux() network.Multiplexer {
	y := *yamux.DefaultTransport
	y.MaxMessageSize = yamuxFrame
	y.InitialStreamWindowSize, y.MaxStreamWindowSize = mux.Window, mux.Window
	return &y
}

// yamuxFrame bounds a yamux frame in bytes. libp2p's 64 KiB costs a third of the
// throughput; a frame much larger than this delays the heartbeats behind it.
const yamuxFrame = 256 << 10
