package dht

import (
	"context"
	"errors"
	"fmt"
	"time"

	"peermesh/node"
	"peermesh/node/rendezvous"

	"github.com/ipfs/go-cid"
	kad "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multihash"
)

const (
	// Form is what finders of this kind call themselves.
	Form = "dht"
	// prefix is that of our own DHT's protocols.
	prefix = "/peermesh"
	// most bounds the peers that one question brings.
	most = 64
	// A question, and an announcement, visit a handful of nodes one after the other.
	askPatience = 30 * time.Second
	// Questions come soon after each other at first, and then ever less often.
	firstPause, lastPause = 500 * time.Millisecond, 30 * time.Second
	// renewal is how often a peer says anew that it is there.
	renewal = 10 * time.Minute
)

// Config says which DHT to ask.
type Config struct {
	// Peers holds multiaddrs with /p2p/ID of peers that serve Peermesh's own DHT. Empty:
	// the public one.
	Peers []string
}

// A finder finds peers by a DHT.
type finder struct {
	peers  []peer.AddrInfo
	public bool
}

func init() {
	rendezvous.ProvideDHT(func(c rendezvous.Config) (rendezvous.Finder, error) { return New(Config{Peers: c.DHT}) })
}

// New is a finder that asks a DHT.
func New(c Config) (rendezvous.Finder, error) {
	if len(c.Peers) == 0 {
		return &finder{peers: kad.GetDefaultBootstrapPeerAddrInfos(), public: true}, nil
	}
	f := &finder{}
	for _, s := range c.Peers {
		p, err := node.ParseAddr(s)
		if err != nil {
			return nil, fmt.Errorf("dht: %w", err)
		}
		f.peers = append(f.peers, p)
	}
	return f, nil
}

func (f *finder) String() string { return Form }

// Find announces the node and asks for others until ctx ends. A node that is itself
// one of Config.Peers waits for those who come to it.
func (f *finder) Find(ctx context.Context, s rendezvous.Search) error {
	d, err := f.table(s.Node)
	if err != nil {
		return fmt.Errorf("dht: %w", err)
	}
	key := keyOf(s.Mesh)
	var announced time.Time
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, lastPause) {
		err := f.enter(ctx, s.Node, d)
		if err == nil && time.Since(announced) > renewal {
			if err = provide(ctx, d, key); err == nil {
				announced = time.Now()
			}
		}
		if err == nil {
			ask(ctx, d, key, s)
		} else if s.Trouble != nil && ctx.Err() == nil {
			s.Trouble(err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	if err := d.Close(); err != nil {
		return fmt.Errorf("dht: %w", err)
	}
	return nil
}

// table makes the node a part of the DHT.
func (f *finder) table(n *node.Node) (*kad.IpfsDHT, error) {
	if f.public {
		return kad.New(n.Host(), kad.Mode(kad.ModeClient), kad.BootstrapPeers(f.peers...))
	}
	return kad.New(n.Host(), kad.Mode(kad.ModeServer), kad.ProtocolPrefix(prefix), kad.BootstrapPeers(f.peers...))
}

// enter connects to those who are in the DHT already, as long as this node knows none
// of them. With one of its own peers it waits for the others.
func (f *finder) enter(ctx context.Context, n *node.Node, d *kad.IpfsDHT) error {
	if d.RoutingTable().Size() > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	failed := errors.New("nobody else has entered the DHT yet")
	for _, p := range f.peers {
		if p.ID == n.ID() {
			continue
		}
		err := n.Connect(ctx, p)
		if err == nil {
			<-d.RefreshRoutingTable()
			if d.RoutingTable().Size() > 0 {
				return nil
			}
			err = fmt.Errorf("%s serves no such DHT", p.ID)
		}
		failed = err
	}
	return failed
}

// provide says under the mesh's key that this node is there.
func provide(ctx context.Context, d *kad.IpfsDHT, key cid.Cid) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	return d.Provide(ctx, key, true)
}

// ask tells of those who have said the same.
func ask(ctx context.Context, d *kad.IpfsDHT, key cid.Cid, s rendezvous.Search) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	for p := range d.FindProvidersAsync(ctx, key, most) {
		if p.ID != s.Node.ID() && len(p.Addrs) > 0 {
			s.Found(p)
		}
	}
}

// keyOf is the key of a mesh.
func keyOf(mesh string) cid.Cid {
	sum, err := multihash.Sum([]byte("peermesh mesh "+mesh), multihash.SHA2_256, -1)
	if err != nil {
		panic("dht: SHA-256 is not to be had: " + err.Error())
	}
	return cid.NewCidV1(cid.Raw, sum)
}
