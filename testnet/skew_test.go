package testnet_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/mesh"
	"peermesh/ops"
	"peermesh/testnet"
)

// Clocks that differ by minutes form a world all the same.
func TestSkewOfMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := testnet.New(t, testnet.Config{Nodes: 4, Skew: func(i int) time.Duration { return time.Duration(i-2) * 7 * time.Minute / 2 }})
		if err := net.Run(func(g *ops.Group) error { return sum(t.Context(), g) }); err != nil {
			t.Error(err)
		}
	})
}

// A clock that is an hour off forms none, and why is said.
func TestSkewOfHours(t *testing.T) {
	for _, skew := range []time.Duration{time.Hour, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			_, err := testnet.Start(ctx, testnet.Config{Nodes: 3, Mesh: mesh.Config{Wait: 10 * time.Second}, Skew: func(i int) time.Duration {
				if i == 1 {
					return skew
				}
				return 0
			}})
			if err == nil || !strings.Contains(err.Error(), "one of the two clocks is wrong by more than 15m") {
				t.Errorf("%v: %v", skew, err)
			}
		})
	}
}

// A clock that jumps harms no world that stands.
func TestSkewInMidWorld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := testnet.New(t, testnet.Config{Nodes: 3})
		for _, ahead := range []time.Duration{time.Hour, -2 * time.Hour, 0} {
			net.Skew(1, ahead)
			time.Sleep(time.Minute)
			if err := net.Run(func(g *ops.Group) error { return sum(t.Context(), g) }); err != nil {
				t.Error(err)
			}
		}
		if net.World(0).Epoch() != 1 {
			t.Errorf("epoch %d", net.World(0).Epoch())
		}
	})
}
