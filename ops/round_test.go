package ops_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"peermesh/ops"
	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
)

func TestNewSchedulesRun(t *testing.T) {
	ctx := context.Background()
	for n := 1; n <= 7; n++ {
		for _, lanes := range []int{1, 2} {
			for _, size := range []int{0, 1, n, 1000, 300_000} {
				if size > 1000 && n > 5 {
					continue
				}
				for _, s := range []schedule.Schedule{
					schedule.Doubling(n), schedule.OneShot(n), schedule.AllReduce(schedule.Direct(n)), schedule.AllReduce(schedule.Bruck(n)),
					schedule.AllReduce(schedule.Cascade(n)), schedule.AllReduce(schedule.Binomial(n)), schedule.AllReduce(schedule.Tree(n, 6)),
					schedule.AllReduce(schedule.Halving(n)),
				} {
					canonical := schedule.Check(s, schedule.AllReduceContract.Canonical()) == nil
					want := make([]float32, size)
					in := make([][]float32, n)
					for r := range in {
						in[r] = make([]float32, size)
						for i := range in[r] {
							in[r][i] = float32(math.Sin(float64(i*n+r+1)) * math.Exp2(float64((i*7+r*5)%20)))
						}
					}
					for i := range want {
						col := make([]float32, n)
						for r := range col {
							col[r] = in[r][i]
						}
						want[i] = schedule.Fold(col, func(a, b float32) float32 { return a + b })
					}
					check(t, world(n, ops.Config{Lanes: lanes}, func(g *ops.Group) error {
						x := append([]float32(nil), in[g.Rank()]...)
						if err := g.Run(ctx, s, tensor.Of(x), tensor.Sum).Wait(); err != nil {
							return fmt.Errorf("%s of %d, %d: %w", s.Name, n, size, err)
						}
						for i := range x {
							if canonical && x[i] != want[i] || math.Abs(float64(x[i]-want[i])) > 8 {
								return fmt.Errorf("%s of %d: element %d of %d is %v, want %v", s.Name, n, i, size, x[i], want[i])
							}
						}
						return nil
					}))
				}
				if size%n == 0 && size > 0 {
					for _, s := range []schedule.Schedule{schedule.BruckAllToAll(n), schedule.DirectAllToAll(n), schedule.Pairwise(n)} {
						check(t, world(n, ops.Config{Lanes: lanes}, func(g *ops.Group) error {
							x := make([]float32, size)
							b := size / n
							for i := range x {
								x[i] = float32(g.Rank()*1000 + i/b)
							}
							if err := g.Run(ctx, s, tensor.Of(x), tensor.Sum).Wait(); err != nil {
								return err
							}
							for i := range x {
								if x[i] != float32(i/b*1000+g.Rank()) {
									return fmt.Errorf("%s of %d: %v", s.Name, n, x[i])
								}
							}
							return nil
						}))
					}
				}
			}
		}
	}
}
