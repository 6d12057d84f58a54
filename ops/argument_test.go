package ops_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"peermesh/ops"
	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// A bad call says which argument, moves nothing, and leaves the group usable.
func TestBadArguments(t *testing.T) {
	f := func(n int) tensor.Tensor { return tensor.New(tensor.Float32, n) }
	cases := []struct {
		name, says string
		call       func(g *ops.Group) *ops.Work
	}{
		{"root above", "root 2", func(g *ops.Group) *ops.Work { return g.Broadcast(ctx, f(1), 2) }},
		{"root below", "root -1", func(g *ops.Group) *ops.Work { return g.Reduce(ctx, f(1), tensor.Sum, -1) }},
		{"no op", "no reduction", func(g *ops.Group) *ops.Work { return g.AllReduce(ctx, f(1), tensor.Op{}) }},
		{"no op to reduce", "no reduction", func(g *ops.Group) *ops.Work { return g.Reduce(ctx, f(1), tensor.Op{}, 0) }},
		{"zero tensor", "zero Tensor", func(g *ops.Group) *ops.Work { return g.AllReduce(ctx, tensor.Tensor{}, tensor.Sum) }},
		{"gather size", "want 2 times", func(g *ops.Group) *ops.Work { return g.AllGather(ctx, f(3), f(2)) }},
		{"gather type", "want 2 times", func(g *ops.Group) *ops.Work { return g.AllGather(ctx, f(4), tensor.New(tensor.Int32, 2)) }},
		{"scatter size", "want 2 times", func(g *ops.Group) *ops.Work { return g.ReduceScatter(ctx, f(4), f(4), tensor.Sum) }},
		{"scatter op", "no reduction", func(g *ops.Group) *ops.Work { return g.ReduceScatter(ctx, f(2), f(4), tensor.Op{}) }},
		{"self", "itself", func(g *ops.Group) *ops.Work { return g.Isend(ctx, f(1), g.Rank(), 0) }},
		{"no such rank", "rank 7", func(g *ops.Group) *ops.Work { return g.Irecv(ctx, f(1), 7, 0) }},
		{"tag", "tag", func(g *ops.Group) *ops.Work { return g.Isend(ctx, f(1), 1-g.Rank(), ops.MaxTag+1) }},
		{"ranks of a schedule", "3 ranks", func(g *ops.Group) *ops.Work { return g.Run(ctx, schedule.Ring(3), f(3), tensor.Sum) }},
		{"chunks that move", "divide", func(g *ops.Group) *ops.Work { return g.Run(ctx, schedule.Pairwise(2), f(3), tensor.Op{}) }},
		{"fold without op", "no reduction", func(g *ops.Group) *ops.Work { return g.Run(ctx, schedule.Ring(2), f(3), tensor.Op{}) }},
		{"malformed move", "malformed", func(g *ops.Group) *ops.Work {
			s := schedule.Schedule{Name: "x", Ranks: 2, Chunks: 1, Rounds: []schedule.Round{{{From: 0, To: 1, Src: 1, Dst: 0, N: 1}}}}
			return g.Run(ctx, s, f(3), tensor.Op{})
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			check(t, world(2, ops.Config{}, func(g *ops.Group) error {
				err := c.call(g).Wait()
				if err == nil || !strings.HasPrefix(err.Error(), "ops: ") || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v, want it to say %q", err, c.says)
				}
				return g.AllReduce(ctx, f(4), tensor.Sum).Wait()
			}))
		})
	}
}

func TestBadConfig(t *testing.T) {
	for says, c := range map[string]ops.Config{
		"Timeout":    {Timeout: -time.Second},
		"Lanes":      {Lanes: ops.MaxLanes + 1},
		`"quickest"`: {Algorithm: "quickest"},
	} {
		g := ops.NewGroup(memnet.New(3)[0], c)
		if err := g.AllReduce(ctx, tensor.New(tensor.Float32, 1), tensor.Sum).Wait(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
	g := ops.NewGroup(memnet.New(2)[0], ops.Config{Timeout: -1})
	if err := g.Send(ctx, tensor.New(tensor.Float32, 1), 1, 0); err == nil || !strings.Contains(err.Error(), "Timeout") {
		t.Errorf("send: %v", err)
	}
}

func TestSelfIsASentinel(t *testing.T) {
	g := ops.NewGroup(memnet.New(1)[0], ops.Config{})
	if err := g.Send(ctx, tensor.New(tensor.Uint8, 1), 0, 0); !errors.Is(err, ops.ErrSelf) {
		t.Error(err)
	}
}
