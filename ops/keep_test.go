package ops_test

import (
	"runtime"
	"testing"
	"weak"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// A group lives as long as its world. What it worked on last need not.
func TestGroupKeepsNoTensor(t *testing.T) {
	for _, n := range []int{8, 20_000, 1 << 20} { // by itself, by couriers, on lanes
		groups := make([]*ops.Group, 2)
		for r, w := range memnet.New(2) {
			groups[r] = ops.NewGroup(w, ops.Config{})
		}
		kept := make([]weak.Pointer[float32], len(groups))
		check(t, each(groups, func(g *ops.Group) error {
			x := make([]float32, n)
			kept[g.Rank()] = weak.Make(&x[0])
			return g.AllReduce(t.Context(), tensor.Of(x), tensor.Sum).Wait()
		}))
		for range 3 { // what a pool or a goroutine that has just ended refers to
			runtime.GC()
		}
		for r, p := range kept {
			if p.Value() != nil {
				t.Errorf("rank %d still refers to a tensor of %d elements", r, n)
			}
		}
		runtime.KeepAlive(groups)
	}
}
