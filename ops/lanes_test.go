package ops_test

import (
	"context"
	"iter"
	"slices"
	"sync"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// noted is a world that notes the lanes of its sends in their order, and may say that
// they take what is sent.
type noted struct {
	*memnet.World
	ahead int64
	mu    sync.Mutex
	lanes []uint64
}

func (n *noted) Ahead(int, uint64) int64 { return n.ahead }

func (n *noted) Send(ctx context.Context, to int, lane uint64, tag ops.Tag, size int64, parts iter.Seq2[[]byte, error]) error {
	n.mu.Lock()
	n.lanes = append(n.lanes, lane&0xffff)
	n.mu.Unlock()
	return n.World.Send(ctx, to, lane, tag, size, parts)
}

// Lanes that are known to take their messages go one after the other, each through all
// its rounds. It may be so on some ranks alone: the result is that of lanes side by side.
func TestLanesOneAfterTheOther(t *testing.T) {
	const ranks, lanes = 4, 3
	worlds := make([]*noted, ranks)
	groups := make([]*ops.Group, ranks)
	for r, w := range memnet.New(ranks) {
		worlds[r] = &noted{World: w}
		if r > 0 {
			worlds[r].ahead = 64 << 10
		}
		groups[r] = ops.NewGroup(worlds[r], ops.Config{Lanes: lanes, Algorithm: "all_reduce=doubling"})
	}
	check(t, each(groups, func(g *ops.Group) error {
		x := make([]int32, 3000)
		for i := range x {
			x[i] = int32(i * (g.Rank() + 1))
		}
		if err := g.AllReduce(t.Context(), tensor.Of(x), tensor.Sum).Wait(); err != nil {
			return err
		}
		for i := range x {
			if x[i] != int32(10*i) {
				t.Errorf("rank %d: element %d is %d, want %d", g.Rank(), i, x[i], 10*i)
				break
			}
		}
		return nil
	}))
	for r, w := range worlds[1:] {
		if want := []uint64{0, 0, 1, 1, 2, 2}; !slices.Equal(w.lanes, want) {
			t.Errorf("rank %d sent on lanes %v, want %v", r+1, w.lanes, want)
		}
	}
}
