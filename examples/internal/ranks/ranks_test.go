package ranks

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// All ranks are of one world and can add up.
func TestRun(t *testing.T) {
	for _, n := range []int{1, 3} {
		var calls atomic.Int32
		err := Run(t.Context(), n, func(ctx context.Context, g *ops.Group) error {
			calls.Add(1)
			x := []int64{int64(g.Rank())}
			if err := g.AllReduce(ctx, tensor.Of(x), tensor.Sum).Wait(); err != nil {
				return err
			}
			if want := int64(n * (n - 1) / 2); g.Size() != n || x[0] != want {
				t.Errorf("%d ranks, want %d; sum %d, want %d", g.Size(), n, x[0], want)
			}
			return nil
		})
		if err != nil || int(calls.Load()) != n {
			t.Errorf("%d calls of %d; %v", calls.Load(), n, err)
		}
	}
}

// What one rank says ends the others, which wait for it.
func TestRunFails(t *testing.T) {
	bad := errors.New("no more")
	err := Run(t.Context(), 2, func(ctx context.Context, g *ops.Group) error {
		if g.Rank() == 1 {
			return bad
		}
		return g.Barrier(ctx).Wait()
	})
	if !errors.Is(err, bad) || !strings.Contains(err.Error(), "rank 0") {
		t.Errorf("got %v", err)
	}
	if err := Run(t.Context(), 0, nil); err == nil {
		t.Error("a world of no ranks")
	}
}
