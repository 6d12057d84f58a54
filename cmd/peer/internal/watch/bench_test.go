package watch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"peermesh/mesh"
	"peermesh/node"
	"peermesh/ops"
	"peermesh/ops/flight"
	"peermesh/ops/tensor"
	"peermesh/testnet"
	"peermesh/testnet/memnet"
)

// TestCostOfWatching measures what a recorder, from which all else is read, adds to an
// all_reduce of 64 KiB of two ranks: by the default transport of one machine, over
// loopback and in memory, where it is shortest. Bursts with and without take turns. It
// asserts nothing, for a shared machine would say otherwise now and then, and runs when it
// is asked for.
func TestCostOfWatching(t *testing.T) {
	costly(t)
	for name, worlds := range map[string]func(t *testing.T) []ops.Transport{
		"default": neighbours,
		"tcp":     func(t *testing.T) []ops.Transport { return over(t, testnet.TCP) },
		"quic":    func(t *testing.T) []ops.Transport { return over(t, testnet.QUIC) },
		"queues": func(*testing.T) (worlds []ops.Transport) {
			for _, w := range memnet.New(2) {
				worlds = append(worlds, w)
			}
			return worlds
		},
	} {
		t.Run(name, func(t *testing.T) { compare(t, worlds(t)) })
	}
}

func costly(t *testing.T) {
	if os.Getenv("PEERMESH_COSTS") == "" {
		t.Skip("PEERMESH_COSTS=1 measures what watching costs")
	}
}

// over are the worlds of two nodes of a testnet.
func over(t *testing.T, network testnet.Network) (worlds []ops.Transport) {
	net := testnet.New(t, testnet.Config{Nodes: 2, Network: network})
	return []ops.Transport{net.World(0), net.World(1)}
}

// neighbours are those of two peers on this machine, by what nodes take if nobody says
// otherwise: shared memory, where it is to be had.
func neighbours(t *testing.T) (worlds []ops.Transport) {
	var bootstrap []string
	meshes := make([]*mesh.Mesh, 2)
	for i := range meshes {
		n, err := node.Start(t.Context(), node.Config{Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.Close() })
		if meshes[i], err = mesh.Join(t.Context(), n, mesh.Config{Name: "costs", World: 2, Bootstrap: bootstrap}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = meshes[i].Close() })
		for _, a := range n.Addrs() {
			bootstrap = append(bootstrap, a.String())
		}
	}
	for _, m := range meshes {
		w, err := m.World(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		worlds = append(worlds, w)
	}
	return worlds
}

// compare takes turns between three groups of a world: one that is watched, and two that
// are not, whose difference is chance. How long the same code takes depends a little on
// where its memory is, so the groups are made anew many times, and of each time the bursts
// count that were disturbed least.
func compare(t *testing.T, worlds []ops.Transport) {
	const times, rounds, burst, warm = 15, 60, 20, 5
	const plain, watched, control = 0, 1, 2
	var took, added, chance []float64 // ns an operation
	id := uint32(0)
	for range times {
		var groups [3][]*ops.Group
		for kind := range groups {
			id++
			for _, w := range worlds {
				c := ops.Config{ID: id}
				if kind == watched {
					c.Observer = flight.New(0)
				}
				groups[kind] = append(groups[kind], ops.NewGroup(w, c))
			}
		}
		var bursts [3][]float64
		for i := range rounds + warm {
			for k := range groups {
				kind := (i + k) % len(groups)
				if d := reduce(t, groups[kind], burst); i >= warm {
					bursts[kind] = append(bursts[kind], float64(d)/burst)
				}
			}
		}
		quick := func(kind int) float64 { slices.Sort(bursts[kind]); return bursts[kind][rounds/5] }
		took = append(took, quick(plain))
		added = append(added, quick(watched)-(quick(plain)+quick(control))/2)
		chance = append(chance, quick(control)-quick(plain))
	}
	for _, all := range [][]float64{took, added, chance} {
		slices.Sort(all)
	}
	t.Logf("%.2f µs; watched %+.0f ns (of three quarters of the times %+.0f to %+.0f), %+.2f %%; by chance %+.0f (%+.0f to %+.0f)",
		took[times/2]/1e3, added[times/2], added[times/8], added[times-1-times/8], 100*added[times/2]/took[times/2],
		chance[times/2], chance[times/8], chance[times-1-times/8])
}

// reduce times n all_reduces of 64 KiB.
func reduce(t *testing.T, groups []*ops.Group, n int) time.Duration {
	var ranks sync.WaitGroup
	begun := time.Now()
	for _, g := range groups {
		ranks.Go(func() {
			x := tensor.New(tensor.Float32, 1<<14)
			for range n {
				if err := g.AllReduce(t.Context(), x, tensor.Sum).Wait(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	ranks.Wait()
	return time.Since(begun)
}

// What an update of the page costs the peer, by the number of ranks.
func BenchmarkUpdate(b *testing.B) {
	for _, size := range []int{4, 64} {
		b.Run(fmt.Sprintf("ranks=%d", size), func(b *testing.B) {
			board, _ := fakeBoard(size)
			n := 0
			var s scribe
			for b.Loop() {
				board.Ask()
				n = len(s.write(board))
			}
			b.ReportMetric(float64(n), "bytes")
		})
	}
}

// TestCostOfPage measures the share of a processor that a page of 64 ranks takes, and a
// scrape each second beside it. The fake ranks' answers count, too.
func TestCostOfPage(t *testing.T) {
	costly(t)
	board, _ := fakeBoard(64)
	s := serve(t, board, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", s.URL()+"events", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	var reader sync.WaitGroup
	reader.Go(func() { _, _ = io.Copy(io.Discard, stream.Body) }) // until cancel
	const seconds = 6
	for _, scrape := range []bool{false, true} {
		before := processorTime(t)
		for range seconds {
			<-time.After(time.Second)
			if !scrape {
				continue
			}
			m, err := http.Get(s.URL() + "metrics")
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, m.Body)
			m.Body.Close()
		}
		t.Logf("%.2f %% of a processor; with a scrape a second: %v", 100*(processorTime(t)-before).Seconds()/seconds, scrape)
	}
	cancel()
	reader.Wait()
	stream.Body.Close()
}
