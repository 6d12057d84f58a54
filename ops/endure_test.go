package ops_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// A hundred thousand small operations leave goroutines, heap and lanes where they
// were after the first few.
func TestEndurance(t *testing.T) {
	const n = 2
	rounds := 100_000 / 8
	if raceDetector {
		rounds = 20_000 / 8
	}
	synctest.Test(t, func(t *testing.T) {
		groups := make([]*ops.Group, n)
		var worlds []*counting
		for r, w := range memnet.New(n) {
			worlds = append(worlds, &counting{World: w, lanes: make(map[uint64]bool)})
			groups[r] = ops.NewGroup(worlds[r], ops.Config{})
		}
		check(t, each(groups, smallOps(100)))
		synctest.Wait()
		goroutines, bytes, lanes := runtime.NumGoroutine(), heap(), worlds[0].count()
		check(t, each(groups, smallOps(rounds)))
		synctest.Wait()
		if now := runtime.NumGoroutine(); now > goroutines+8 { // those of tests before this one come and go
			t.Errorf("%d goroutines have become %d", goroutines, now)
		}
		if now := heap(); now > bytes+64<<10 {
			t.Errorf("%d bytes in use have become %d", bytes, now)
		}
		if now := worlds[0].count(); now != lanes {
			t.Errorf("%d lanes have become %d", lanes, now)
		}
	})
}

// A counting world counts the lanes that it sends on.
type counting struct {
	*memnet.World
	mu    sync.Mutex
	lanes map[uint64]bool // between two ranks
}

func (c *counting) Send(ctx context.Context, to int, lane uint64, tag ops.Tag, n int64, parts iter.Seq2[[]byte, error]) error {
	c.mu.Lock()
	c.lanes[lane] = true
	c.mu.Unlock()
	return c.World.Send(ctx, to, lane, tag, n, parts)
}

func (c *counting) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.lanes)
}

// smallOps are eight operations a round, each on fewer than a hundred bytes.
func smallOps(rounds int) func(g *ops.Group) error {
	return func(g *ops.Group) error {
		x, out := tensor.New(tensor.Int32, 3), tensor.New(tensor.Int32, 6)
		a, b, c := tensor.New(tensor.Int32, 3), tensor.New(tensor.Int32, 3), tensor.New(tensor.Int32, 3)
		other := 1 - g.Rank()
		for i := range rounds {
			works := []*ops.Work{
				g.AllReduce(ctx, x, tensor.Max), g.Broadcast(ctx, x, i%2), g.Barrier(ctx), g.AllGather(ctx, out, x),
				g.Isend(ctx, a, other, 1), g.Irecv(ctx, b, other, 1),
				g.Isend(ctx, a, other, 2), g.IrecvAny(ctx, c, 2),
			}
			for k, w := range works {
				if err := w.Wait(); err != nil {
					return fmt.Errorf("round %d, operation %d: %w", i, k, err)
				}
			}
		}
		return nil
	}
}
