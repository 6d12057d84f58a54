package ops_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/ops"
	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// Any schedule runs as it is proved: what several ranks fold into one chunk, what
// comes in several spans from one rank, what lands where something leaves.
func TestRunSchedules(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		for _, s := range []schedule.Schedule{
			schedule.Doubling(n), schedule.OneShot(n), schedule.AllReduce(schedule.Direct(n)), schedule.AllReduce(schedule.Bruck(n)),
			schedule.AllReduce(schedule.Cascade(n)), schedule.AllReduce(schedule.Cascade(n)).Refine(3), schedule.AllReduce(schedule.Binomial(n)),
			schedule.AllReduce(schedule.Tree(n, 6)), schedule.AllReduce(schedule.Halving(n)), schedule.AllReduce(schedule.Ring(n)),
		} {
			runSums(t, s, []int{0, n + 1, 300})
		}
		for _, s := range []schedule.Schedule{schedule.BruckAllToAll(n), schedule.DirectAllToAll(n), schedule.Pairwise(n)} {
			runSwaps(t, s, 7)
		}
	}
	runSums(t, schedule.OneShot(3), []int{40_003}) // more than is sent without waiting
	runSums(t, schedule.AllReduce(schedule.Cascade(5)), []int{100_003})
}

// runSums compares with the canonical sum, or where the order is another one with
// the sum of whole numbers.
func runSums(t *testing.T, s schedule.Schedule, sizes []int) {
	t.Helper()
	exact := schedule.Check(s, schedule.AllReduceContract.Canonical()) != nil
	xs := func(size int) []tensor.Tensor {
		all := make([]tensor.Tensor, s.Ranks)
		for r := range all {
			all[r] = filled(tensor.Float32, size, uint64(r), exact)
		}
		return all
	}
	add := func(a, b tensor.Tensor) tensor.Tensor { return folded([]tensor.Tensor{a, b}, tensor.Sum) }
	check(t, world(s.Ranks, ops.Config{Lanes: 1 + 2*(s.Ranks%2)}, func(g *ops.Group) error {
		for _, size := range sizes {
			x := clone(xs(size)[g.Rank()])
			if err := g.Run(ctx, s, x, tensor.Sum).Wait(); err != nil {
				return fmt.Errorf("%s of %d, %d: %w", s.Name, s.Ranks, size, err)
			}
			if want := schedule.Fold(xs(size), add); !bytes.Equal(bytesOf(x), bytesOf(want)) {
				return fmt.Errorf("%s of %d, %d: wrong sum", s.Name, s.Ranks, size)
			}
		}
		return nil
	}))
}

func runSwaps(t *testing.T, s schedule.Schedule, part int) {
	t.Helper()
	check(t, world(s.Ranks, ops.Config{Lanes: 2}, func(g *ops.Group) error {
		x := make([]int32, part*s.Ranks)
		for i := range x {
			x[i] = int32(1000*g.Rank() + i)
		}
		if err := g.Run(ctx, s, tensor.Of(x), tensor.Op{}).Wait(); err != nil {
			return err
		}
		for i, v := range x {
			if want := int32(1000*(i/part) + part*g.Rank() + i%part); v != want {
				return fmt.Errorf("%s of %d: element %d is %d, want %d", s.Name, s.Ranks, i, v, want)
			}
		}
		return nil
	}))
}

// A dawdler is a world whose sends begin late.
type dawdler struct {
	*memnet.World
	late time.Duration
}

func (d dawdler) Send(ctx context.Context, to int, lane uint64, tag ops.Tag, n int64, parts iter.Seq2[[]byte, error]) error {
	time.Sleep(d.late)
	return d.World.Send(ctx, to, lane, tag, n, parts)
}

// What a round sends is as it was before the round, though it be short and late, and what
// lands there long and early.
func TestRunSendsWhatWasThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const chunks, chunk = 16, 64 << 10
		s := schedule.Schedule{Name: "swap", Ranks: 2, Chunks: chunks, Rounds: []schedule.Round{{
			{From: 0, To: 1, N: chunks}, {From: 1, To: 0, Src: 3, Dst: 3, N: 1},
		}}}
		groups := make([]*ops.Group, 2)
		for r, w := range memnet.New(2) {
			groups[r] = ops.NewGroup(dawdler{w, time.Duration(r) * time.Second}, ops.Config{Lanes: 1})
		}
		check(t, each(groups, func(g *ops.Group) error {
			x := bytes.Repeat([]byte{byte(10 + g.Rank())}, chunks*chunk)
			if err := g.Run(t.Context(), s, tensor.Of(x), tensor.Op{}).Wait(); err != nil {
				return err
			}
			want := bytes.Repeat([]byte{10}, chunks*chunk)
			if g.Rank() == 0 {
				copy(want[3*chunk:], bytes.Repeat([]byte{11}, chunk))
			}
			if !bytes.Equal(x, want) {
				return fmt.Errorf("chunk 3 begins with %d, want %d", x[3*chunk], want[3*chunk])
			}
			return nil
		}))
	})
}
