package main

import (
	"context"
	"fmt"
	"io"

	"peermesh/ops"
	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
)

// allReduce adds x up over all ranks, by messages alone: each rank hands on to its right
// what came from its left, and adds that to its own. After size-1 messages it has seen
// everybody's.
func allReduce(ctx context.Context, g *ops.Group, x []float32) error {
	left, right := (g.Rank()+g.Size()-1)%g.Size(), (g.Rank()+1)%g.Size()
	give, take := append([]float32(nil), x...), make([]float32, len(x))
	for range g.Size() - 1 {
		sent := g.Isend(ctx, tensor.Of(give), right, 0)
		if err := g.Recv(ctx, tensor.Of(take), left, 0); err != nil {
			return err
		}
		for i, v := range take {
			x[i] += v
		}
		if err := sent.Wait(); err != nil {
			return err
		}
		give, take = take, give
	}
	return nil
}

// ring adds up three times: by hand, by a schedule that hands on a part at a time, and
// by what the library would choose.
func ring(ctx context.Context, g *ops.Group, out io.Writer) error {
	x := []float32{1, 2, 3, 4, 5, 6}
	if err := allReduce(ctx, g, x); err != nil {
		return err
	}
	y := []float32{1, 2, 3, 4, 5, 6}
	if err := g.Run(ctx, schedule.AllReduce(schedule.Ring(g.Size())), tensor.Of(y), tensor.Sum).Wait(); err != nil {
		return err
	}
	z := []float32{1, 2, 3, 4, 5, 6}
	if err := g.AllReduce(ctx, tensor.Of(z), tensor.Sum).Wait(); err != nil {
		return err
	}
	fmt.Fprintf(out, "rank %d: %v, %v, %v\n", g.Rank(), x, y, z)
	return nil
}
