package testnet_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet"
	"peermesh/testnet/simlink"
)

// on runs f for every network: in a bubble where there is virtual time.
func on(t *testing.T, networks []testnet.Network, f func(t *testing.T, c testnet.Config)) {
	for _, network := range networks {
		t.Run(string(network), func(t *testing.T) {
			c := testnet.Config{
				Nodes: 3, Network: network, Seed: 7,
				Link: simlink.Link{Latency: 5 * time.Millisecond, Jitter: time.Millisecond},
				Port: simlink.Port{Up: 10e6, Down: 100e6},
			}
			if network.Virtual() {
				synctest.Test(t, func(t *testing.T) { f(t, c) })
				return
			}
			f(t, c)
		})
	}
}

// The same program runs on every network.
func TestNetworks(t *testing.T) {
	on(t, testnet.Networks(), func(t *testing.T, c testnet.Config) {
		net := testnet.New(t, c)
		err := net.Run(func(g *ops.Group) error {
			x := make([]int64, 100_000)
			for i := range x {
				x[i] = int64(g.Rank() + 1)
			}
			if err := g.AllReduce(t.Context(), tensor.Of(x), tensor.Sum).Wait(); err != nil {
				return err
			}
			if x[0] != 6 || x[len(x)-1] != 6 {
				return fmt.Errorf("got %d and %d", x[0], x[len(x)-1])
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		for i := range c.Nodes {
			if net.World(i).Rank() != i {
				t.Errorf("node %d is rank %d", i, net.World(i).Rank())
			}
		}
		if err := net.Freeze(0); (err == nil) != (net.Links() != nil) || err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("freeze: %v", err)
		}
		if err := net.Thaw(0); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("thaw: %v", err)
		}
	})
}
