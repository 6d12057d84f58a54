package ops_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/ops"
	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// A placed world says which host its rank is on.
type placed struct {
	distant
	host string
}

func (p placed) Host() string { return p.host }

// alike are links that show nothing of hosts.
var alike = schedule.Uniform{Delay: 100 * time.Microsecond, BytesPerSecond: 1e9}

// placedGroups are ranks that know only of their own hosts.
func placedGroups(l schedule.Links, hosts ...string) []*ops.Group {
	groups := make([]*ops.Group, len(hosts))
	for r, w := range memnet.New(len(hosts)) {
		groups[r] = ops.NewGroup(placed{distant{w, l}, hosts[r]}, ops.Config{})
	}
	return groups
}

// What each rank knows of itself, all know after measuring, and groups of them too.
func TestMeasureGathersHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups := placedGroups(alike, "a", "b", "a", "", "b", "")
		if _, known := groups[0].Links().(ops.Located); known {
			t.Error("hosts are known before they are measured")
		}
		check(t, each(groups, func(g *ops.Group) error { return g.Measure(ctx) }))
		some := make([]*ops.Group, len(groups))
		check(t, each(groups, func(g *ops.Group) (err error) {
			some[g.Rank()], err = g.Split(ctx, []int{1, 3, 4})
			return err
		}))
		for r, g := range groups {
			l := g.Links().(ops.Located)
			if l.Host(0) != l.Host(2) || l.Host(1) != l.Host(4) || l.Host(0) == l.Host(1) || l.Host(3) != 0 || l.Host(5) != 0 {
				t.Errorf("rank %d has hosts %d %d %d %d %d %d", r, l.Host(0), l.Host(1), l.Host(2), l.Host(3), l.Host(4), l.Host(5))
			}
			if got := ops.Islands(6, l); !slices.EqualFunc(got, [][]int{{0, 2}, {1, 4}, {3}, {5}}, slices.Equal) {
				t.Errorf("rank %d has islands %v", r, got)
			}
		}
		l := some[4].Links().(ops.Located)
		if l.Host(0) != l.Host(2) || l.Host(1) != 0 {
			t.Errorf("of ranks 1, 3 and 4: %d %d %d", l.Host(0), l.Host(1), l.Host(2))
		}
		check(t, each(some, func(g *ops.Group) error { return g.Measure(ctx) })) // asks the world below
		if l := some[4].Links().(ops.Located); l.Host(0) == 0 || l.Host(0) != l.Host(2) {
			t.Errorf("measured among ranks 1, 3 and 4: %d %d", l.Host(0), l.Host(2))
		}
	})
}

// One host, or as many as ranks, say nothing, and latencies are asked.
func TestHostsThatSayNothing(t *testing.T) {
	for _, hosts := range [][]string{{"a", "a", "a", "a"}, {"a", "b", "c", "d"}, {"", "", "", ""}} {
		synctest.Test(t, func(t *testing.T) {
			groups := placedGroups(sites(2), hosts...)
			check(t, each(groups, func(g *ops.Group) error { return g.Measure(ctx) }))
			if got := fmt.Sprint(ops.Islands(4, groups[1].Links())); got != "[[0 2] [1 3]]" {
				t.Errorf("hosts %q: islands %s", hosts, got)
			}
		})
	}
}

// The figure of a rank's host is none of a link's, and Links that know nothing are not asked.
func TestLinksWithoutHosts(t *testing.T) {
	l := ops.NewMeasured(2, []int64{-5, 0, 10, 20, 0, 0, 7, 0})
	if l.Host(0) != -5 || l.Host(1) != 7 || l.Latency(0, 1) != 10 || l.Rate(1, 0) != 20 {
		t.Errorf("hosts %d and %d, %v, %v", l.Host(0), l.Host(1), l.Latency(0, 1), l.Rate(1, 0))
	}
}

// On hosts that are far apart each operation goes in two levels, with the right results, and
// in less time than before.
func TestTwoLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups := placedGroups(sites(2), "a", "b", "a", "b", "a")
		check(t, each(groups, func(g *ops.Group) error { return g.Measure(ctx) }))
		n, links := len(groups), groups[0].Links()
		const size = 100_003
		// A reduce is as cheap in the canonical order, which is that of these hosts.
		for _, k := range []ops.Kind{ops.KindAllReduce, ops.KindReduceScatter, ops.KindAllGather, ops.KindBroadcast} {
			c := ops.Candidates(k, n, 0, 4*size, links)[0]
			if c.Schedule.Algorithm() != "two-level" || c.Named {
				t.Errorf("%v goes by %s", k, c.Schedule.Name)
			}
		}
		check(t, each(groups, func(g *ops.Group) error {
			x := make([]int32, size)
			for i := range x {
				x[i] = int32(i + g.Rank())
			}
			if err := g.AllReduce(ctx, tensor.Of(x), tensor.Sum).Wait(); err != nil {
				return err
			}
			for i, v := range x {
				if want := int32(n*i + n*(n-1)/2); v != want {
					return fmt.Errorf("element %d is %d, want %d", i, v, want)
				}
			}
			return nil
		}))
	})
}

// Without hosts the two levels are there for who names them.
func TestTwoLevelsByName(t *testing.T) {
	for _, c := range ops.Candidates(ops.KindAllReduce, 8, 0, 1<<26, ops.DefaultLinks) {
		if c.Named != (c.Schedule.Algorithm() == "two-level" || c.Schedule.Algorithm() == "direct" || c.Schedule.Algorithm() == "one-shot") {
			t.Errorf("%s has to be named: %v", c.Schedule.Name, c.Named)
		}
	}
	check(t, world(6, ops.Config{Algorithm: "two-level"}, func(g *ops.Group) error {
		x := []float32{1, 2, 3}
		err := g.AllReduce(ctx, tensor.Of(x), tensor.Sum).Wait()
		if err == nil && !slices.Equal(x, []float32{6, 12, 18}) {
			err = fmt.Errorf("got %v", x)
		}
		return err
	}))
}
