package ops_test

import (
	"errors"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// A small operation allocates its Work and nothing else, once lanes, plans and buffers
// are there. Both ranks' count here.
func TestSmallOperationsAllocateTheirWork(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector's pools drop what they are given")
	}
	const runs, slack = 200, 0.5 // of collections that empty the pools
	x := []tensor.Tensor{tensor.New(tensor.Float32, 2), tensor.New(tensor.Float32, 2)}
	for name, f := range map[string]func(g *ops.Group) *ops.Work{
		"all_reduce": func(g *ops.Group) *ops.Work { return g.AllReduce(ctx, x[g.Rank()], tensor.Sum) },
		"broadcast":  func(g *ops.Group) *ops.Work { return g.Broadcast(ctx, x[g.Rank()], 1) },
		"barrier":    func(g *ops.Group) *ops.Work { return g.Barrier(ctx) },
		"message": func(g *ops.Group) *ops.Work {
			if g.Rank() == 0 {
				return g.Isend(ctx, x[0], 1, 0)
			}
			return g.Irecv(ctx, x[1], 0, 0)
		},
	} {
		check(t, world(2, ops.Config{}, func(g *ops.Group) error {
			var failed error
			step := func() {
				if err := f(g).Wait(); err != nil {
					failed = err
				}
			}
			for range 5 {
				step()
			}
			if g.Rank() == 1 {
				for range runs + 1 {
					step()
				}
				return failed
			}
			if n := testing.AllocsPerRun(runs, step); n > 2+slack {
				t.Errorf("%s: %v allocations of two ranks, want 2", name, n)
			}
			return failed
		}))
	}
}

// What an operation allocates does not grow with its size: nothing for a segment, of which
// there are some 750 here, nor for a message or a buffer, as soon as there are enough.
func TestSegmentsAllocateNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector's pools drop what they are given")
	}
	const runs, ranks, size = 5, 4, 8 << 20
	const most = 300 // of all ranks: their Works, and what collections take out of pools; mostly 5 to 30
	for _, c := range []ops.Config{
		{Algorithm: "all_reduce=ring", Lanes: 1}, {Algorithm: "all_reduce=ring", Lanes: 4},
		{Algorithm: "all_reduce=tree", Lanes: 1}, {Algorithm: "all_reduce=direct", Lanes: 4},
	} {
		check(t, world(ranks, c, func(g *ops.Group) error {
			x := tensor.New(tensor.Float32, size/4)
			var failed error
			step := func() { failed = errors.Join(failed, g.AllReduce(ctx, x, tensor.Sum).Wait()) }
			for range 3 {
				step()
			}
			if g.Rank() > 0 {
				for range runs + 1 {
					step()
				}
			} else if n := testing.AllocsPerRun(runs, step); n > most {
				t.Errorf("%+v: %v allocations", c, n)
			}
			return failed
		}))
	}
}
