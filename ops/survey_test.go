package ops_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/ops"
	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

type chart = interface {
	Latency(from, to int) time.Duration
	Rate(from, to int) float64
	Host(rank int) int64
}

// A mapped world knows its links after a while.
type mapped struct {
	*memnet.World
	after time.Duration
	links chart
}

func (m mapped) Survey(ctx context.Context) (chart, error) {
	select {
	case <-time.After(m.after):
		return m.links, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// hosted are sites that are hosts, or one host.
type hosted struct {
	sites
	one bool
}

func (h hosted) Host(rank int) int64 {
	if h.one {
		return 1
	}
	return int64(rank%int(h.sites)) + 1
}

func mappedGroups(n int, l chart) []*ops.Group {
	groups := make([]*ops.Group, n)
	for r, w := range memnet.New(n) {
		groups[r] = ops.NewGroup(mapped{w, time.Duration(r) * time.Second, l}, ops.Config{})
	}
	return groups
}

// A group goes by what its transport knows, from its first operation on, however late a
// rank learns of it; and so do groups that are made of it. On one host the guess stands.
func TestSurveyedLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups := mappedGroups(5, hosted{sites: 2})
		check(t, each(groups, func(g *ops.Group) error {
			if err := g.Run(ctx, schedule.Doubling(5), f32(10), tensor.Sum).Wait(); err != nil {
				return err
			}
			if err := g.AllReduce(ctx, f32(10), tensor.Sum).Wait(); err != nil {
				return err
			}
			if got, want := g.Links().Latency(0, 3), sites(2).Latency(0, 3); got != want {
				t.Errorf("rank %d: %v, want %v", g.Rank(), got, want)
			}
			made, err := g.Split(ctx, []int{1, 2, 4})
			if err != nil {
				return err
			}
			if got, want := made.Links().Rate(0, 1), sites(2).Rate(1, 2); made.Rank() >= 0 && got != want {
				t.Errorf("rank %d: %v in a new group, want %v", g.Rank(), got, want)
			}
			host, err := g.SplitBy(ctx, g.Rank()%2, 0)
			if err == nil && host.Links() != ops.DefaultLinks {
				t.Errorf("rank %d goes by %v on its host", g.Rank(), host.Links())
			}
			return errors.Join(err, made.Barrier(ctx).Wait(), host.AllReduce(ctx, f32(99), tensor.Sum).Wait())
		}))
		for _, g := range mappedGroups(3, hosted{2, true}) {
			if g.Links() != ops.DefaultLinks {
				t.Errorf("rank %d goes by %v", g.Rank(), g.Links())
			}
		}
	})
}

// Who waits for a survey hears of the world's end; and who has links of a Config does not
// wait.
func TestSurveyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause, begin := errors.New("enough"), time.Now()
		w := mapped{memnet.New(2)[0], time.Hour, hosted{}}
		time.AfterFunc(time.Second, func() { w.End(cause) })
		g, h := ops.NewGroup(w, ops.Config{}), ops.NewGroup(w, ops.Config{ID: 1, Links: sites(1)})
		if h.Links() != sites(1) || time.Since(begin) > 0 {
			t.Errorf("waited for %v, which are not asked for", h.Links())
		}
		if err := g.Run(ctx, schedule.Doubling(2), f32(1), tensor.Sum).Wait(); !errors.Is(err, cause) {
			t.Error(err)
		}
		if err := g.Barrier(ctx).Wait(); !errors.Is(err, cause) || g.Links() != ops.DefaultLinks {
			t.Errorf("%v, %v", err, g.Links())
		}
	})
}

// Long links that carry much are given as many lanes as it takes, in whole windows.
func TestLanesOfLongLinks(t *testing.T) {
	for _, c := range []struct {
		bytes int64
		way   time.Duration
		rate  float64
		want  int
	}{
		{1 << 10, 50 * time.Millisecond, 1e9, 1},     // few bytes
		{8 << 20, time.Millisecond, 1e9, 4},          // not long
		{64 << 20, 20 * time.Millisecond, 25e6, 4},   // twice 1 MB under way
		{64 << 20, 50 * time.Millisecond, 125e6, 16}, // twice 12.5 MB, and no more than there are
		{4 << 20, 50 * time.Millisecond, 125e6, 4},   // a chunk of 1 MiB
		{64 << 20, 20 * time.Millisecond, 137e6, 11}, // twice 5.5 MB
		{64 << 20, 2500 * time.Microsecond, 1e300, 16},
	} {
		if got := ops.LanesFor(schedule.Ring(4), c.bytes, schedule.Uniform{Delay: c.way, BytesPerSecond: c.rate}); got != c.want {
			t.Errorf("%d bytes, %v, %.0f: %d lanes, want %d", c.bytes, c.way, c.rate, got, c.want)
		}
	}
}
