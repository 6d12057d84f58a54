package testnet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"

	"peermesh/mesh"
	"peermesh/node"
	"peermesh/ops"
)

// A member is one node of a Net, through all its lives.
type member struct {
	net    *Net
	number int
	config node.Config
	addr   string // of its first life; the same ever after on Model and Packets

	skew atomic.Int64 // how far its clock is ahead

	mu    sync.Mutex
	state state
}

// A state is what a member is at the moment.
type state struct {
	node  *node.Node
	mesh  *mesh.Mesh
	world *mesh.World
	group *ops.Group
	dead  bool
}

func (m *member) now() state {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

func (m *member) alive() bool { s := m.now(); return s.mesh != nil && !s.dead }

// nodeConfig is that of a member on the network of the Net.
func (n *Net) nodeConfig(i int, key crypto.PrivKey) node.Config {
	c := node.Config{Key: key}
	switch n.config.Network {
	case Memory:
		c.Transports = []string{node.Memory}
	case Model:
		c = n.links.Host(i).Config()
	case Packets:
		c = n.links.Host(i).QUICConfig()
	case TCP:
		c.Listen = []string{"/ip4/127.0.0.1/tcp/0"}
	case QUIC:
		c.Listen = []string{"/ip4/127.0.0.1/udp/0/quic-v1"}
	}
	c.Peers = n.config.Nodes
	return c
}

// start begins a life. What it has started is there also after an error, to be
// closed.
func (m *member) start(ctx context.Context, bootstrap []string) error {
	n, err := node.Start(ctx, m.config)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.state = state{node: n}
	m.mu.Unlock()
	m.addr = n.Addrs()[0].String()
	c := m.net.config.Mesh
	c.Bootstrap = bootstrap
	c.Clock = func() time.Time { return time.Now().Add(time.Duration(m.skew.Load())) }
	joined, err := mesh.Join(ctx, n, c)
	m.mu.Lock()
	m.state.mesh = joined
	m.mu.Unlock()
	return err
}

// form waits for the member's next world.
func (m *member) form(ctx context.Context) (state, error) {
	s := m.now()
	w, err := s.mesh.World(ctx)
	if err != nil {
		return s, fmt.Errorf("testnet: node %d: %w", m.number, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.world, m.state.group = w, ops.NewGroup(m.net.tracer.transport(w), m.net.config.Ops)
	return m.state, nil
}

// close ends the member's life: as a friend, unless it is dead already.
func (m *member) close(ctx context.Context) error {
	s := m.now()
	var err error
	switch {
	case s.node == nil:
		return nil
	case s.mesh != nil && s.dead:
		err = s.mesh.Close()
	case s.mesh != nil:
		err = s.mesh.Leave(ctx)
	}
	return errors.Join(err, s.node.Close())
}
