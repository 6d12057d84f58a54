package testnet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"peermesh/mesh"
	"peermesh/node"
	"peermesh/ops"
	"peermesh/testnet/simlink"
)

// Both kinds of world are a group's transport.
var _ ops.Transport = (*mesh.World)(nil)

// A Net is some nodes in this process, in one world. Nodes are numbered by their
// rank in its first world, and keep their number.
type Net struct {
	config  Config
	links   *simlink.Network // of Model and Packets
	tracer  *tracer          // of the others, if somebody wants to know
	members []*member
}

// New starts the nodes and returns when they stand as one world; the test fails
// when they do not. They close with the test.
func New(t testing.TB, c Config) *Net {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), formTimeout)
	defer cancel()
	net, err := Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := net.Close(); err != nil {
			t.Error(err)
		}
	})
	return net
}

// Start starts the nodes and returns when they stand as one world. ctx bounds only
// that; Close ends them.
func Start(ctx context.Context, c Config) (*Net, error) {
	c, err := c.plan()
	if err != nil {
		return nil, err
	}
	net := &Net{config: c, members: make([]*member, c.Nodes)}
	if c.Network == Model || c.Network == Packets {
		net.links = simlink.New(simlink.Config{Seed: c.Seed, Hosts: c.Nodes, Link: c.Link, Port: c.Port, Trace: c.Trace})
	}
	keys := simlink.Keys(c.Seed, c.Nodes)
	if net.tracer, err = newTracer(net, keys); err != nil {
		return nil, err
	}
	for i := range net.members {
		net.members[i] = &member{net: net, number: i, config: net.nodeConfig(i, keys[i])}
		if c.Skew != nil {
			net.Skew(i, c.Skew(i))
		}
	}
	if err = net.join(ctx); err == nil {
		err = net.Form(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, net.Close())
	}
	return net, nil
}

// join starts every node. The first is the bootstrap of the others.
func (n *Net) join(ctx context.Context) error {
	for i, m := range n.members {
		var bootstrap []string
		if i > 0 {
			bootstrap = []string{n.members[0].addr}
		}
		if err := m.start(ctx, bootstrap); err != nil {
			return err
		}
	}
	return nil
}

// Form waits until every living node is in the mesh's next world, or in the current
// one if it has not had that, and gives it a new group there.
func (n *Net) Form(ctx context.Context) error {
	return n.each(func(m *member) error {
		if !m.alive() {
			return nil
		}
		_, err := m.form(ctx)
		return err
	})
}

// Size is the number of nodes, and of ranks while all take part.
func (n *Net) Size() int { return len(n.members) }

// Node is a node of the Net.
func (n *Net) Node(i int) *node.Node { return n.members[i].now().node }

// Mesh is a node's part in the mesh.
func (n *Net) Mesh(i int) *mesh.Mesh { return n.members[i].now().mesh }

// World is the world that a node was in last: by its rank there, if it is the Net's
// first.
func (n *Net) World(i int) *mesh.World { return n.members[i].now().world }

// Group is a node's group of that whole world. A program makes others with
// ops.NewGroup and an ID of their own.
func (n *Net) Group(i int) *ops.Group { return n.members[i].now().group }

// Links are the modelled links; nil unless the network is Model or Packets.
func (n *Net) Links() *simlink.Network { return n.links }

// Run runs f on every living node, all at once, and returns when all have
// returned. A rank that fails ends the world, so that the others do not wait for
// it; the error names every rank that failed.
func (n *Net) Run(f func(g *ops.Group) error) error {
	return n.each(func(m *member) error {
		s := m.now()
		if s.dead || s.group == nil {
			return nil
		}
		err := f(s.group)
		if err != nil {
			s.world.End(err)
			return fmt.Errorf("rank %d: %w", s.world.Rank(), err)
		}
		return nil
	})
}

// Close leaves the world and closes all nodes and the network.
func (n *Net) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	err := n.each(func(m *member) error { return m.close(ctx) })
	n.tracer.end()
	if n.links != nil {
		err = errors.Join(err, n.links.Close())
	}
	return err
}

// each runs f for every member at once.
func (n *Net) each(f func(m *member) error) error {
	errs := make([]error, len(n.members))
	var wg sync.WaitGroup
	for i, m := range n.members {
		if m != nil {
			wg.Go(func() { errs[i] = f(m) })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}
