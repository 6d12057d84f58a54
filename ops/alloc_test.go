package ops_test

import (
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
