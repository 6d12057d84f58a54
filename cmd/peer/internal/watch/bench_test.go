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

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// What it costs an operation to be watched: the three calls of an Observer.
func BenchmarkFlights(b *testing.B) {
	var f Flights
	o := ops.Operation{Call: ops.Call{Kind: ops.KindAllReduce, Count: 1 << 14}, Bytes: 64 << 10}
	b.ReportAllocs()
	for b.Loop() {
		o.ID++
		f.Begin(o, time.Now())
		f.Start(o.ID, time.Now())
		f.End(o.ID, time.Now(), nil)
	}
}

// TestCostOfWatching measures what a Board and /metrics add to an all_reduce of 64 KiB of
// two ranks, in memory, where it is shortest: bursts with and without take turns. It
// asserts nothing, for a shared machine would say otherwise now and then, and runs when
// it is asked for.
func TestCostOfWatching(t *testing.T) {
	if os.Getenv("PEERMESH_COSTS") == "" {
		t.Skip("PEERMESH_COSTS=1 measures what watching costs")
	}
	plain, seen := pair(nil), pair(&Flights{})
	const rounds, burst = 400, 50
	var without, with []float64
	for i := range rounds + 20 {
		order := []struct {
			groups []*ops.Group
			times  *[]float64
		}{{plain, &without}, {seen, &with}}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, o := range order {
			d := reduce(t, o.groups, burst)
			if i >= 20 {
				*o.times = append(*o.times, float64(d)/burst)
			}
		}
	}
	slices.Sort(without)
	slices.Sort(with)
	for _, q := range []float64{0.1, 0.25, 0.5} {
		a, b := without[int(q*rounds)], with[int(q*rounds)]
		t.Logf("quantile %.2f: %.2f µs without, %.2f µs with: %+.2f %%", q, a/1e3, b/1e3, 100*(b/a-1))
	}
}

// pair are two ranks' groups, the first of which are watched if f is not nil.
func pair(f *Flights) (groups []*ops.Group) {
	for _, w := range memnet.New(2) {
		c := ops.Config{}
		if f != nil {
			c.Observer = f
			f = &Flights{}
		}
		groups = append(groups, ops.NewGroup(w, c))
	}
	return groups
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
	if os.Getenv("PEERMESH_COSTS") == "" {
		t.Skip("PEERMESH_COSTS=1 measures what watching costs")
	}
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
	const seconds = 8
	before := processorTime(t)
	for range seconds {
		<-time.After(time.Second)
		m, err := http.Get(s.URL() + "metrics")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, m.Body)
		m.Body.Close()
	}
	t.Logf("%.2f %% of a processor", 100*(processorTime(t)-before).Seconds()/seconds)
	cancel()
	reader.Wait()
	stream.Body.Close()
}
