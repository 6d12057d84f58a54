package testnet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"peermesh/testnet/simlink"
)

// Kill ends a node without a word to the others, as the death of its process would.
func (n *Net) Kill(i int) error {
	m := n.members[i]
	m.mu.Lock()
	s := m.state
	m.state.dead = true
	m.mu.Unlock()
	if s.dead {
		return nil
	}
	n.tracer.event(simlink.Event{Kind: "kill", From: i, To: i})
	if n.links != nil {
		n.links.Kill(i)
	}
	return s.node.Close()
}

// Restart starts a dead node anew, with the identity it had. It joins the mesh
// through those who live; Form waits for the world it gets into.
func (n *Net) Restart(ctx context.Context, i int) error {
	m := n.members[i]
	s := m.now()
	if !s.dead {
		return fmt.Errorf("testnet: node %d lives", i)
	}
	if err := errors.Join(s.mesh.Close(), s.node.Close()); err != nil {
		return fmt.Errorf("testnet: what is left of node %d: %w", i, err)
	}
	n.tracer.event(simlink.Event{Kind: "restart", From: i, To: i})
	if n.links != nil {
		n.links.Restart(i)
	}
	var others []string
	for _, o := range n.members {
		if o != m && o.alive() {
			others = append(others, o.addr)
		}
	}
	return m.start(ctx, others)
}

// Skew sets how far a node's clock is ahead of the others', or behind if that is
// negative. It is the clock by which announcements expire, and by nothing else does a
// node tell whether another lives: a world that stands does not care.
func (n *Net) Skew(i int, ahead time.Duration) {
	n.members[i].skew.Store(int64(ahead))
	n.tracer.event(simlink.Event{Kind: "skew", From: i, To: i})
}

// Freeze stops a node: it neither reads nor sends, and its connections stay. See
// simlink.Network.Freeze for what of SIGSTOP that is. Only Model and Packets can,
// as with the other faults of the network: the rest return an error that is
// errors.ErrUnsupported.
func (n *Net) Freeze(i int) error { return n.fault(func(l *simlink.Network) { l.Freeze(i) }) }

// Thaw is the reverse of Freeze.
func (n *Net) Thaw(i int) error { return n.fault(func(l *simlink.Network) { l.Thaw(i) }) }

// Cut makes two nodes unreachable for each other, without a word to either.
func (n *Net) Cut(i, j int) error { return n.fault(func(l *simlink.Network) { l.Cut(i, j) }) }

// Heal is the reverse of Cut.
func (n *Net) Heal(i, j int) error { return n.fault(func(l *simlink.Network) { l.Heal(i, j) }) }

// Slow gives a node other rates from now on.
func (n *Net) Slow(i int, p simlink.Port) error {
	return n.fault(func(l *simlink.Network) { l.Shape(i, p) })
}

// SetLink makes the way between two nodes another.
func (n *Net) SetLink(i, j int, to simlink.Link) error {
	return n.fault(func(l *simlink.Network) { l.SetLink(i, j, to) })
}

func (n *Net) fault(f func(l *simlink.Network)) error {
	if n.links == nil {
		return fmt.Errorf("testnet: links of %s cannot misbehave: %w", n.config.Network, errors.ErrUnsupported)
	}
	f(n.links)
	return nil
}

// Dead reports whether a node was killed and not started anew.
func (n *Net) Dead(i int) bool { return n.members[i].now().dead }
