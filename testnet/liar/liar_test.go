package liar_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"go.uber.org/goleak"

	"peermesh/node"
	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet"
	"peermesh/testnet/liar"
	"peermesh/testnet/memnet"
	"peermesh/testnet/simlink"
)

func TestMain(m *testing.M) {
	simlink.RememberSignatures()
	goleak.VerifyTestMain(m)
}

// A world goes on while a stranger tells every member every lie on every protocol.
func TestAttack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := testnet.New(t, testnet.Config{Nodes: 3, Network: testnet.Model, Link: simlink.Link{Latency: time.Millisecond}})
		stranger, err := node.Start(t.Context(), net.Links().Host(3).Config())
		if err != nil {
			t.Fatal(err)
		}
		for i := range net.Size() {
			victim := peer.AddrInfo{ID: net.Node(i).ID(), Addrs: net.Node(i).Host().Addrs()}
			if err := liar.Attack(t.Context(), stranger, victim, uint64(i)); err != nil {
				t.Error(err)
			}
		}
		err = net.Run(func(g *ops.Group) error {
			return g.AllReduce(t.Context(), tensor.Of([]int64{1}), tensor.Sum).Wait()
		})
		if err := errors.Join(err, stranger.Close()); err != nil {
			t.Error(err)
		}
	})
}

// A member whose tags are wrong, or come twice, is found out.
func TestCorrupt(t *testing.T) {
	for name, lie := range map[string]liar.Corrupt{
		"wrong digest": {Tag: func(_ int, tag *ops.Tag) { tag[16] ^= 1 }},
		"replay":       {Twice: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				worlds := memnet.New(2)
				lie.Transport = worlds[1]
				ends := []ops.Transport{worlds[0], &lie}
				errs := make(chan error, len(ends))
				for _, end := range ends {
					go func() {
						g := ops.NewGroup(end, ops.Config{Timeout: time.Minute})
						var err error
						for range 3 {
							ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
							err = errors.Join(err, g.AllReduce(ctx, tensor.Of(make([]int64, 100)), tensor.Sum).Wait())
							cancel()
						}
						errs <- err
					}()
				}
				if err := errors.Join(<-errs, <-errs); err == nil {
					t.Error("nobody minds")
				}
				worlds[0].End(nil)
			})
		})
	}
}
