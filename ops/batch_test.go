package ops_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// Everyone sends to everyone far more than any window, in one batch, and each
// lists its messages in another order.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, size = 4, 200_000
		check(t, world(n, ops.Config{}, func(g *ops.Group) error {
			var batch []ops.P2P
			in := make([][]int64, n)
			for i := range n - 1 {
				peer := (g.Rank() + 1 + i) % n
				in[peer] = make([]int64, size)
				batch = append(batch,
					ops.P2P{Send: true, X: tensor.Of(gift(g.Rank(), uint64(peer), size)), Peer: peer, Tag: 3},
					ops.P2P{X: tensor.Of(in[peer]), Peer: peer, Tag: 3})
			}
			if g.Rank()%2 == 1 {
				slices.Reverse(batch)
			}
			if err := g.Batch(ctx, batch).Wait(); err != nil {
				return err
			}
			for peer, x := range in {
				if peer != g.Rank() && !slices.Equal(x, gift(peer, uint64(g.Rank()), size)) {
					return fmt.Errorf("from rank %d came another message", peer)
				}
			}
			return nil
		}))
	})
}

// One bad argument, and nothing is issued; one bad message, and the others arrive.
func TestBatchErrors(t *testing.T) {
	check(t, world(2, ops.Config{}, func(g *ops.Group) error {
		x, other := f32(2), 1-g.Rank()
		for says, bad := range map[string]ops.P2P{
			"itself": {X: x, Peer: g.Rank()}, "rank 2": {X: x, Peer: 2}, "tag": {X: x, Peer: other, Tag: ops.MaxTag + 1}, "zero Tensor": {Peer: other},
		} {
			err := g.Batch(ctx, []ops.P2P{{Send: true, X: f32(9), Peer: other}, bad}).Wait()
			if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "message 1 of 2") {
				return fmt.Errorf("%s: %w", says, err)
			}
		}
		if g.Rank() == 0 {
			return g.Batch(ctx, []ops.P2P{{Send: true, X: f32(1), Peer: 1, Tag: 1}, {Send: true, X: f32(1), Peer: 1, Tag: 2}}).Wait()
		}
		y := tensor.Of([]float32{5})
		err := g.Batch(ctx, []ops.P2P{{X: f32(3), Peer: 0, Tag: 1}, {X: y, Peer: 0, Tag: 2}}).Wait()
		var m *ops.MismatchError
		if !errors.As(err, &m) || m.Theirs.Count != 1 || m.Ours.Count != 3 {
			return fmt.Errorf("got %w", err)
		}
		return want("the other", y, f32(1))
	}))
}

func TestEmptyBatch(t *testing.T) {
	if err := ops.NewGroup(memnet.New(2)[0], ops.Config{}).Batch(ctx, nil).Wait(); err != nil {
		t.Error(err)
	}
}
