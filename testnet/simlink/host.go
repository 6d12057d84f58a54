package simlink

import (
	"cmp"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/multiformats/go-multiaddr"

	"peermesh/node"
)

// port is where every host listens.
const port = 4001

// A Host is one machine of a network, with one process on it.
type Host struct {
	net   *Network
	index int
	key   crypto.PrivKey
	id    peer.ID
	addr  multiaddr.Multiaddr

	// Guarded by net.mu.
	up, down pipe
	queue    int
	landed   time.Duration // when the last packet did
	life     int           // how often it was killed
	dead     bool
	frozen   bool
	freezes  int
	held     []*packet // landed while frozen
	listener *listener
	socket   *socket
	conns    map[*conn]struct{}
}

func newHost(n *Network, i int, key crypto.PrivKey) *Host {
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		panic("simlink: identity of a host: " + err.Error())
	}
	h := &Host{
		net: n, index: i, key: key, id: id, conns: make(map[*conn]struct{}),
		addr: multiaddr.StringCast(fmt.Sprintf("/ip4/10.%d.%d.1/tcp/%d", i>>8, i&0xff, port)),
	}
	h.shape(n.config.Port)
	return h
}

// Key is the i-th private key of a seed.
func Key(seed uint64, i int) crypto.PrivKey {
	var p [ed25519.SeedSize]byte
	for j := range len(p) / 8 {
		binary.LittleEndian.PutUint64(p[8*j:], hash(seed, uint64(i), uint64(j)))
	}
	private := ed25519.NewKeyFromSeed(p[:])
	key, _, err := crypto.KeyPairFromStdKey(&private)
	if err != nil {
		panic("simlink: key of a host: " + err.Error())
	}
	return key
}

// Keys are the first n private keys of a seed in the order of their peer IDs, which
// is that of the ranks of a world.
func Keys(seed uint64, n int) []crypto.PrivKey {
	keys, ids := make([]crypto.PrivKey, n), make(map[crypto.PrivKey]peer.ID, n)
	for i := range keys {
		keys[i] = Key(seed, i)
		id, err := peer.IDFromPrivateKey(keys[i])
		if err != nil {
			panic("simlink: identity of a host: " + err.Error())
		}
		ids[keys[i]] = id
	}
	slices.SortFunc(keys, func(a, b crypto.PrivKey) int { return cmp.Compare(ids[a], ids[b]) })
	return keys
}

// ID is the host's identity.
func (h *Host) ID() peer.ID { return h.id }

// Key is the private key of its identity.
func (h *Host) Key() crypto.PrivKey { return h.key }

// Addr is where the host listens, with /p2p/ID: what a bootstrap list holds.
func (h *Host) Addr() string { return h.addr.String() + "/p2p/" + h.id.String() }

// Multiaddr is Addr without the identity.
func (h *Host) Multiaddr() multiaddr.Multiaddr { return h.addr }

// Transport is the host's own, for a libp2p host that Option does not suit.
func (h *Host) Transport(limit network.ResourceManager) (*Transport, error) {
	return h.newTransport(h.id, limit, nil, nil)
}

// Config is that of a node on this host; the caller may set Peers.
func (h *Host) Config() node.Config {
	return node.Config{
		Key: h.key, Listen: []string{h.addr.String()}, Transports: []string{node.None},
		Transport: func(id peer.ID, limits network.ResourceManager, gater connmgr.ConnectionGater) (transport.Transport, error) {
			return h.newTransport(id, limits, gater, nil)
		},
	}
}

// Option gives a libp2p host this transport. The host's identity must be Key.
func (h *Host) Option() libp2p.Option { return libp2p.Transport(h.newTransport) }

// shape sets the host's rates. The lock is held, or not needed yet.
func (h *Host) shape(p Port) {
	h.up.rate, h.down.rate, h.queue = p.Up, p.Down, p.Queue
	if h.queue <= 0 {
		h.queue = DefaultQueue
	}
}

// place is where in a tick packets land at the host: at one of its own among the
// first thousand hosts, and not where packets leave or nodes begin.
func (h *Host) place() time.Duration {
	place := 1 + time.Duration(h.index)%(tick-2)
	if place >= flushing {
		place++
	}
	return place
}

// full reports whether the uplink's queue is. The lock is held.
func (h *Host) full(now time.Duration) bool { return h.room() > now }

// room is when the uplink's queue takes, or took, the next packet.
func (h *Host) room() time.Duration { return h.up.free - wireTime(h.queue, h.up.rate) }

// connections are the host's, in an order that is the same in every run. The lock
// is held.
func (h *Host) connections() []*conn {
	return slices.SortedFunc(maps.Keys(h.conns), func(a, b *conn) int {
		return cmp.Or(cmp.Compare(a.peer.host.index, b.peer.host.index),
			cmp.Compare(a.pair.dialer, b.pair.dialer), cmp.Compare(a.pair.number, b.pair.number))
	})
}

// shut ends the process on the host: its kernel sends what was written and closes
// its connections. The lock is held.
func (h *Host) shut(why error) {
	h.life++
	h.frozen, h.held = false, nil
	if h.listener != nil {
		h.listener.shut()
	}
	if h.socket != nil {
		h.socket.shut()
	}
	for _, c := range h.connections() {
		c.shut(0, why)
	}
}
