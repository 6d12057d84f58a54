package testnet_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"peermesh/mesh"
	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet"
)

// A receive from any source outlives ranks that leave as long as there are others.
// That the last has left is its error, names it, and ends no world.
func TestRecvAnyOutlivesThoseThatLeave(t *testing.T) {
	net := testnet.New(t, testnet.Config{Nodes: 3})
	var first, received sync.WaitGroup
	first.Add(1)
	received.Add(1)
	err := net.Run(func(g *ops.Group) error {
		ctx := t.Context()
		switch g.Rank() {
		case 1: // leaves without a word
			defer first.Done()
			return net.Leave(ctx, 1)
		case 2: // sends when it is alone, and leaves
			first.Wait()
			if err := g.Send(ctx, tensor.Of([]int64{7}), 0, 4); err != nil {
				return err
			}
			received.Wait()
			return net.Leave(ctx, 2)
		}
		x := []int64{0}
		from, err := g.RecvAny(ctx, tensor.Of(x), 4)
		received.Done()
		if err != nil || from != 2 || x[0] != 7 {
			return fmt.Errorf("%d from rank %d: %w", x[0], from, err)
		}
		var left *mesh.LeftError
		if from, err = g.RecvAny(ctx, tensor.Of(x), 4); from != -1 || !errors.As(err, &left) || left.Rank < 1 || !errors.Is(err, mesh.ErrLeft) {
			return fmt.Errorf("from rank %d, of none: %w", from, err)
		}
		if cause := net.World(0).Context().Err(); cause != nil {
			return fmt.Errorf("the world ended: %w", cause)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
