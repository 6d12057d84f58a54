package testnet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	golog "github.com/ipfs/go-log/v2"
	"go.uber.org/goleak"

	"peermesh/mesh"
	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet"
	"peermesh/testnet/simlink"
)

func TestMain(m *testing.M) {
	simlink.RememberSignatures()
	golog.SetLogLevel("swarm2", "fatal") // it calls a killed host's listener an error
	goleak.VerifyTestMain(m)
}

func TestRanks(t *testing.T) {
	net := testnet.New(t, testnet.Config{Nodes: 4})
	for r := range net.Size() {
		w := net.World(r)
		if w.Rank() != r || w.Size() != 4 || net.Group(r).Rank() != r {
			t.Errorf("world %d is rank %d of %d", r, w.Rank(), w.Size())
		}
		for q := range 4 {
			if w.Peer(q) != net.World(0).Peer(q) {
				t.Errorf("rank %d has another rank %d", r, q)
			}
			if q > 0 && w.Peer(q-1) >= w.Peer(q) {
				t.Error("ranks are not in the order of the peer IDs")
			}
		}
	}
}

func TestRun(t *testing.T) {
	for _, n := range []int{1, 3} {
		net := testnet.New(t, testnet.Config{Nodes: n})
		err := net.Run(func(g *ops.Group) error {
			x := []int64{int64(g.Rank() + 1)}
			if err := g.AllReduce(t.Context(), tensor.Of(x), tensor.Product).Wait(); err != nil {
				return err
			}
			if want := map[int]int64{1: 1, 3: 6}[n]; x[0] != want {
				return fmt.Errorf("got %d, want %d", x[0], want)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// A rank that dies, or fails, ends the others with its name.
func TestDeathAndFailure(t *testing.T) {
	for name, die := range map[string]func(net *testnet.Net, rank int) error{
		"killed": func(net *testnet.Net, rank int) error { return net.Kill(rank) },
		"failed": func(net *testnet.Net, rank int) error { return errors.New("no disk") },
	} {
		t.Run(name, func(t *testing.T) {
			net := testnet.New(t, testnet.Config{Nodes: 3})
			victim := net.World(1).Peer(1)
			errs := make([]error, 3)
			_ = net.Run(func(g *ops.Group) error {
				if g.Rank() == 1 {
					errs[1] = die(net, 1)
					return errs[1]
				}
				errs[g.Rank()] = g.Barrier(context.Background()).Wait()
				return errs[g.Rank()]
			})
			for _, r := range []int{0, 2} {
				var e *mesh.EndedError
				if !errors.As(errs[r], &e) || e.Rank != 1 || e.Peer != victim || !strings.Contains(errs[r].Error(), victim.String()) {
					t.Errorf("rank %d: %v", r, errs[r])
				}
			}
		})
	}
}

func TestBadSize(t *testing.T) {
	for _, n := range []int{-1, 0, testnet.MaxNodes + 1} {
		if _, err := testnet.Start(t.Context(), testnet.Config{Nodes: n}); err == nil {
			t.Errorf("started %d nodes", n)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := testnet.Start(ctx, testnet.Config{Nodes: 2}); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}

func ExampleStart() {
	net, err := testnet.Start(context.Background(), testnet.Config{Nodes: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer net.Close()
	err = net.Run(func(g *ops.Group) error {
		x := []float32{1, 2}
		err := g.AllReduce(context.Background(), tensor.Of(x), tensor.Sum).Wait()
		if g.Rank() == 0 {
			fmt.Println(x)
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// [2 4]
	// <nil>
}
