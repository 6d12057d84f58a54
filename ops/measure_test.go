package ops_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/ops"
	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// A distant world has links that take their time, by the clock of a bubble.
type distant struct {
	*memnet.World
	links schedule.Links
}

func (d distant) Send(ctx context.Context, to int, lane uint64, tag ops.Tag, n int64, parts iter.Seq2[[]byte, error]) error {
	time.Sleep(d.links.Latency(d.Rank(), to) + time.Duration(float64(n)/d.links.Rate(d.Rank(), to)*1e9))
	return d.World.Send(ctx, to, lane, tag, n, parts)
}

// sites are links that are fast within sites, of ranks of one remainder, and slow
// between them.
type sites int

func (s sites) Latency(from, to int) time.Duration {
	if from%int(s) == to%int(s) {
		return time.Duration(100+from+to) * time.Microsecond
	}
	return time.Duration(20_000+100*(from+to)) * time.Microsecond
}

func (s sites) Rate(from, to int) float64 {
	if from%int(s) == to%int(s) {
		return 1e9
	}
	return 5e6
}

func distantGroups(n int, l schedule.Links) []*ops.Group {
	groups := make([]*ops.Group, n)
	for r, w := range memnet.New(n) {
		groups[r] = ops.NewGroup(distant{w, l}, ops.Config{})
	}
	return groups
}

// What is measured is what is there, and all ranks have the same of it.
func TestMeasure(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		synctest.Test(t, func(t *testing.T) {
			groups := distantGroups(n, sites(2))
			start := time.Now()
			check(t, each(groups, func(g *ops.Group) error { return g.Measure(ctx) }))
			if d := time.Since(start); d > time.Duration(n)*time.Second {
				t.Errorf("%d ranks took %v", n, d)
			}
			for a := range n {
				for b := range n {
					if a == b {
						continue
					}
					got, all := groups[a].Links(), groups[0].Links()
					if got.Latency(a, b) != all.Latency(a, b) || got.Rate(a, b) != all.Rate(b, a) {
						t.Errorf("ranks 0 and %d differ about %d→%d", a, a, b)
					}
					if d, want := got.Latency(a, b), sites(2).Latency(a, b); d < want || d > want+want/100 {
						t.Errorf("%d→%d: %v, want %v", a, b, d, want)
					}
					if rate, want := got.Rate(a, b), sites(2).Rate(a, b); rate < .98*want || rate > 1.02*want {
						t.Errorf("%d→%d: %.0f bytes/s, want %.0f", a, b, rate, want)
					}
				}
			}
			check(t, each(groups, func(g *ops.Group) error { return g.AllReduce(ctx, f32(10), tensor.Sum).Wait() }))
		})
	}
}

// On two sites a group that has measured takes less time than one that has not,
// and so does one that is made of it.
func TestMeasuredIsFaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 8
		groups := distantGroups(n, sites(2))
		clock := func(of []*ops.Group) time.Duration {
			start := time.Now()
			check(t, each(of, func(g *ops.Group) error {
				x := f32(50_000)
				return errors.Join(g.AllReduce(ctx, x, tensor.Sum).Wait(), g.Barrier(ctx).Wait())
			}))
			return time.Since(start)
		}
		before := clock(groups)
		check(t, each(groups, func(g *ops.Group) error { return g.Measure(ctx) }))
		if after := clock(groups); after > before {
			t.Errorf("%v after measuring, %v before", after, before)
		}
		some := make([]*ops.Group, n)
		check(t, each(groups, func(g *ops.Group) (err error) {
			some[g.Rank()], err = g.Split(ctx, []int{0, 1, 3, 5})
			return err
		}))
		if d := some[5].Links().Latency(0, 1); d < 10*time.Millisecond {
			t.Errorf("ranks 0 and 1 of a new group are %v apart", d)
		}
		check(t, each(some, func(g *ops.Group) error { return g.AllReduce(ctx, f32(1000), tensor.Sum).Wait() }))
	})
}

// Measuring has its place in the order of calls, as all else.
func TestMeasureDisagrees(t *testing.T) {
	for r, err := range world(3, ops.Config{}, func(g *ops.Group) error {
		if g.Rank() == 1 {
			return g.Barrier(ctx).Wait()
		}
		return g.Measure(ctx)
	}) {
		var m *ops.MismatchError
		if !errors.As(err, &m) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

func TestTournament(t *testing.T) {
	for n := 2; n <= 17; n++ {
		met := make([][]int, n)
		for rank := range n {
			for round, peer := range ops.Tournament(n, rank) {
				if peer < 0 {
					continue
				}
				met[rank] = append(met[rank], peer)
				if back := ops.Tournament(n, peer)[round]; peer == rank || back != rank {
					t.Errorf("%d ranks, round %d: %d has %d, who has %d", n, round, rank, peer, back)
				}
			}
			slices.Sort(met[rank])
			if len(met[rank]) != n-1 || len(slices.Compact(met[rank])) != n-1 {
				t.Errorf("%d ranks: %d meets %v", n, rank, met[rank])
			}
		}
	}
}

func TestIslands(t *testing.T) {
	for _, c := range []struct {
		n    int
		l    schedule.Links
		want string
	}{
		{1, ops.DefaultLinks, "[[0]]"},
		{5, ops.DefaultLinks, "[[0 1 2 3] [4]]"},
		{9, ops.DefaultLinks, "[[0 1 2 3] [4 5 6 7] [8]]"},
		{6, sites(2), "[[0 2 4] [1 3 5]]"},
		{7, sites(3), "[[0 3 6] [1 4] [2 5]]"},
	} {
		if got := fmt.Sprint(ops.Islands(c.n, c.l)); got != c.want {
			t.Errorf("%d ranks: %s, want %s", c.n, got, c.want)
		}
	}
}

// Figures from peers are taken within bounds.
func TestMeasuredWithinBounds(t *testing.T) {
	l := ops.NewMeasured(2, []int64{0, 0, -5, -5, 1 << 62, 1 << 62, 0, 0})
	if l.Latency(0, 1) != 0 || l.Rate(1, 0) != 1 {
		t.Errorf("%v, %v", l.Latency(0, 1), l.Rate(1, 0))
	}
	l = ops.NewMeasured(2, []int64{0, 0, 1 << 62, 1 << 62, 0, 0, 0, 0})
	if l.Latency(1, 0) != time.Hour || l.Rate(0, 1) != 1e15 {
		t.Errorf("%v, %v", l.Latency(0, 1), l.Rate(1, 0))
	}
}
