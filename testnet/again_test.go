package testnet_test

import (
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet"
	"peermesh/testnet/simlink"
)

// runs is how often a run is tried again: a few times, or 50 for `make again`.
func runs() int {
	if os.Getenv("PEERMESH_AGAIN") != "" {
		return 50
	}
	return 3
}

// The same seed gives the same trace, byte for byte, in memory and on modelled links:
// of a world that computes, loses a node, takes it back, and computes again. (Which
// streams a node still resets when it closes, pubsub draws by lot.)
func TestSameAgain(t *testing.T) {
	if simlink.Raced {
		t.Skip("the race detector shuffles goroutines")
	}
	for _, network := range []testnet.Network{testnet.Memory, testnet.Model} {
		t.Run(string(network), func(t *testing.T) {
			var first []string
			for i := range runs() {
				var trace []string
				var over atomic.Bool
				c := testnet.Config{
					Nodes: 5, Network: network, Seed: 3,
					Link: simlink.Link{Latency: 5 * time.Millisecond, Jitter: time.Millisecond},
					Trace: func(e simlink.Event) {
						if !over.Load() {
							trace = append(trace, e.String())
						}
					},
				}
				testnet.Exact(func() {
					synctest.Test(t, func(t *testing.T) {
						eventful(t, c)
						over.Store(network == testnet.Model)
					})
				})
				if i == 0 {
					first = trace
				}
				for j := range max(len(first), len(trace)) {
					was, is := "the end", "the end"
					if j < len(first) {
						was = first[j]
					}
					if j < len(trace) {
						is = trace[j]
					}
					if was != is {
						t.Fatalf("run %d: line %d was %s, is %s", i, j+1, was, is)
					}
				}
			}
			if len(first) < 70 || !slices.ContainsFunc(first, isKill) {
				t.Errorf("a trace of %d lines: %v", len(first), first)
			}
		})
	}
}

func isKill(line string) bool { return strings.HasSuffix(line, "kill") }

// eventful is the life of a world with a death in it.
func eventful(t *testing.T, c testnet.Config) {
	net := testnet.New(t, c)
	compute := func() {
		err := net.Run(func(g *ops.Group) error {
			x := make([]float32, 5000)
			time.Sleep(time.Duration(g.Rank()) * time.Millisecond)
			if err := g.AllReduce(t.Context(), tensor.Of(x), tensor.Sum).Wait(); err != nil {
				return err
			}
			if err := g.Broadcast(t.Context(), tensor.Of(x), 1).Wait(); err != nil {
				return err
			}
			return g.Barrier(t.Context()).Wait()
		})
		if err != nil {
			t.Error(err)
		}
	}
	compute()
	if err := net.Kill(3); err != nil {
		t.Fatal(err)
	}
	ended(t, net, 3)
	if err := net.Restart(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if err := net.Form(t.Context()); err != nil {
		t.Fatal(err)
	}
	compute()
}
