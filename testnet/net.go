package testnet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"peermesh/mesh"
	"peermesh/node"
	"peermesh/ops"
)

const (
	// MaxNodes bounds the nodes of one Net: each has its own sockets.
	MaxNodes = 256
	// formTimeout bounds the forming of a world under New.
	formTimeout = time.Minute
	// leaveTimeout bounds the leaving of one.
	leaveTimeout = 10 * time.Second
	// name is the mesh that the nodes of every Net are in.
	name = "testnet"
)

// Both kinds of world are a group's transport.
var _ ops.Transport = (*mesh.World)(nil)

// A Net is n nodes in this process, in one world.
type Net struct {
	members []*member // by rank once the world stands
}

type member struct {
	node  *node.Node
	mesh  *mesh.Mesh
	world *mesh.World
	group *ops.Group
}

// New starts n nodes and returns when they stand as one world; the test fails
// when they do not. They close with the test.
func New(t testing.TB, n int) *Net {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), formTimeout)
	defer cancel()
	net, err := Start(ctx, n)
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

// Start starts n nodes and returns when they stand as one world. ctx bounds only
// that; Close ends them.
func Start(ctx context.Context, n int) (*Net, error) {
	if n < 1 || n > MaxNodes {
		return nil, fmt.Errorf("testnet: %d nodes: want 1 to %d", n, MaxNodes)
	}
	net := &Net{members: make([]*member, n)}
	err := net.join(ctx)
	if err != nil {
		return nil, errors.Join(err, net.Close())
	}
	byRank := make([]*member, n)
	for _, m := range net.members {
		byRank[m.world.Rank()] = m
	}
	net.members = byRank
	return net, nil
}

// join starts every node and waits for its world. The first node is the
// bootstrap of the others.
func (n *Net) join(ctx context.Context) error {
	var bootstrap []string
	for i := range n.members {
		m, err := start(ctx, len(n.members), bootstrap)
		if m != nil {
			n.members[i] = m
		}
		if err != nil {
			return err
		}
		if i == 0 {
			bootstrap = []string{m.node.Addrs()[0].String()}
		}
	}
	return n.each(func(m *member) (err error) {
		if m.world, err = m.mesh.World(ctx); err != nil {
			return err
		}
		m.group = ops.NewGroup(m.world, ops.Config{})
		return nil
	})
}

// start returns a member also with an error, when there is something to close.
func start(ctx context.Context, world int, bootstrap []string) (*member, error) {
	n, err := node.Start(ctx, node.Config{Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Peers: world})
	if err != nil {
		return nil, err
	}
	m := &member{node: n}
	m.mesh, err = mesh.Join(ctx, n, mesh.Config{Name: name, World: world, Bootstrap: bootstrap})
	return m, err
}

// Size is the number of ranks.
func (n *Net) Size() int { return len(n.members) }

// World is a rank's world.
func (n *Net) World(rank int) *mesh.World { return n.members[rank].world }

// Group is a rank's group of the whole world. A program makes others with
// ops.NewGroup and an ID of their own.
func (n *Net) Group(rank int) *ops.Group { return n.members[rank].group }

// Run runs f once a rank, all at once, and returns when all have returned. A
// rank that fails ends the world, so that the others do not wait for it; the
// error names every rank that failed.
func (n *Net) Run(f func(g *ops.Group) error) error {
	return n.each(func(m *member) error {
		err := f(m.group)
		if err != nil {
			m.world.End(err)
			return fmt.Errorf("rank %d: %w", m.world.Rank(), err)
		}
		return nil
	})
}

// Kill closes a rank's node without a word to the others, as the death of a
// process would.
func (n *Net) Kill(rank int) error { return n.members[rank].node.Close() }

// Close leaves the world and closes all nodes.
func (n *Net) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	return n.each(func(m *member) error {
		var err error
		if m.mesh != nil {
			err = m.mesh.Leave(ctx)
		}
		return errors.Join(err, m.node.Close())
	})
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
