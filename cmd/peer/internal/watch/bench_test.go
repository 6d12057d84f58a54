package watch

import (
	"context"
	"encoding/json"
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

// compare takes turns between two groups of a world, of which one is watched.
func compare(t *testing.T, worlds []ops.Transport) {
	const rounds, burst, warm = 600, 20, 20
	var groups [2][]*ops.Group // not watched, and watched
	for _, w := range worlds {
		groups[0] = append(groups[0], ops.NewGroup(w, ops.Config{ID: 1}))
		groups[1] = append(groups[1], ops.NewGroup(w, ops.Config{ID: 2, Observer: flight.New(0)}))
	}
	var times [2][]float64
	for i := range rounds + warm {
		for k := range 2 {
			which := (i + k) % 2
			if d := reduce(t, groups[which], burst); i >= warm {
				times[which] = append(times[which], float64(d)/burst)
			}
		}
	}
	slices.Sort(times[0])
	slices.Sort(times[1])
	for _, q := range []float64{0.02, 0.1, 0.25, 0.5} {
		without, with := times[0][int(q*rounds)], times[1][int(q*rounds)]
		t.Logf("quantile %.2f: %.2f µs, watched %.2f µs: %+.0f ns, %+.2f %%", q, without/1e3, with/1e3, with-without, 100*(with/without-1))
	}
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
			for b.Loop() {
				board.Ask()
				p, err := json.Marshal(board.State())
				if err != nil {
					b.Fatal(err)
				}
				n = len(p)
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
