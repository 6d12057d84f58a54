package testnet_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/mesh"
	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet"
	"peermesh/testnet/simlink"
)

// model runs f in a bubble, on a Net of modelled links.
func model(t *testing.T, nodes int, f func(t *testing.T, net *testnet.Net)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, testnet.New(t, testnet.Config{
			Nodes: nodes, Network: testnet.Model, Link: simlink.Link{Latency: 10 * time.Millisecond},
		}))
	})
}

func sum(ctx context.Context, g *ops.Group) error {
	x := []int64{1}
	if err := g.AllReduce(ctx, tensor.Of(x), tensor.Sum).Wait(); err != nil {
		return err
	}
	if x[0] != int64(g.Size()) {
		return fmt.Errorf("the sum is %d of %d", x[0], g.Size())
	}
	return nil
}

// ended runs a barrier that a fault stands in the way of, and returns how long the
// slowest rank took to learn of it.
func ended(t *testing.T, net *testnet.Net, but int) time.Duration {
	t.Helper()
	start := time.Now()
	errs := make([]error, net.Size())
	_ = net.Run(func(g *ops.Group) error { // errs has what it returns
		if g.Rank() == but {
			<-net.World(but).Context().Done()
			return nil
		}
		errs[g.Rank()] = g.Barrier(context.Background()).Wait()
		return errs[g.Rank()]
	})
	for r, err := range errs {
		var e *mesh.EndedError
		if r != but && (!errors.As(err, &e) || e.Rank != but) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	return time.Since(start)
}

// A process that dies is noticed in the time that the news travels; one that stops
// or cannot be reached, when it has been silent for too long.
func TestNoticed(t *testing.T) {
	for _, c := range []struct {
		name     string
		fault    func(net *testnet.Net) error
		from, to time.Duration
	}{
		{"kill", func(n *testnet.Net) error { return n.Kill(2) }, 0, 100 * time.Millisecond},
		{"freeze", func(n *testnet.Net) error { return n.Freeze(2) }, time.Second, 4 * time.Second},
		{"cut", func(n *testnet.Net) error { return errors.Join(n.Cut(2, 0), n.Cut(2, 1)) }, time.Second, 4 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			model(t, 3, func(t *testing.T, net *testnet.Net) {
				if err := net.Run(func(g *ops.Group) error { return sum(t.Context(), g) }); err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(time.Millisecond, func() {
					if err := c.fault(net); err != nil {
						t.Error(err)
					}
				})
				if took := ended(t, net, 2); took < c.from || took > c.to {
					t.Errorf("noticed after %v", took)
				}
			})
		})
	}
}

// What heals before anyone counts as dead costs time and nothing else.
func TestShortFaults(t *testing.T) {
	for name, c := range map[string]struct{ fault, heal func(net *testnet.Net) error }{
		"freeze": {func(n *testnet.Net) error { return n.Freeze(1) }, func(n *testnet.Net) error { return n.Thaw(1) }},
		"cut":    {func(n *testnet.Net) error { return n.Cut(0, 1) }, func(n *testnet.Net) error { return n.Heal(0, 1) }},
	} {
		t.Run(name, func(t *testing.T) {
			model(t, 3, func(t *testing.T, net *testnet.Net) {
				if err := c.fault(net); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				time.AfterFunc(time.Second, func() {
					if err := c.heal(net); err != nil {
						t.Error(err)
					}
				})
				if err := net.Run(func(g *ops.Group) error { return sum(t.Context(), g) }); err != nil {
					t.Error(err)
				}
				if took := time.Since(start); took < time.Second || took > 1200*time.Millisecond {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// A killed node comes back with its identity, and all get into the next world.
func TestRestart(t *testing.T) {
	for _, network := range []testnet.Network{testnet.Memory, testnet.Model, testnet.Packets} {
		t.Run(string(network), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := testnet.New(t, testnet.Config{Nodes: 3, Network: network, Link: simlink.Link{Latency: time.Millisecond}})
				who := net.Node(0).ID()
				if err := net.Restart(t.Context(), 0); err == nil {
					t.Error("restarted a node that lives")
				}
				if err := net.Kill(0); err != nil {
					t.Fatal(err)
				}
				ended(t, net, 0)
				if err := net.Restart(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
				if err := net.Form(t.Context()); err != nil {
					t.Fatal(err)
				}
				if net.World(0).Peer(0) != who || net.World(1).Epoch() < 2 {
					t.Errorf("epoch %d, rank 0 is %s, was %s", net.World(1).Epoch(), net.World(0).Peer(0), who)
				}
				if err := net.Run(func(g *ops.Group) error { return sum(t.Context(), g) }); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A slow uplink takes the time that its rate says.
func TestSlow(t *testing.T) {
	model(t, 2, func(t *testing.T, net *testnet.Net) {
		for _, rate := range []float64{0, 1e6} {
			if err := net.Slow(0, simlink.Port{Up: rate}); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			err := net.Run(func(g *ops.Group) error {
				x := tensor.Of(make([]byte, 1_000_000))
				if g.Rank() == 0 {
					return g.Send(t.Context(), x, 1, 0)
				}
				return g.Recv(t.Context(), x, 0, 0)
			})
			took := time.Since(start)
			if err != nil || rate == 0 && took > 100*time.Millisecond || rate > 0 && (took < time.Second || took > 1100*time.Millisecond) {
				t.Errorf("at %v bytes per second: %v, %v", rate, took, err)
			}
		}
	})
}
