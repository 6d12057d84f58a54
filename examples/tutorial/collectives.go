package main

import (
	"context"
	"fmt"
	"io"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// collectives calls the six of the tutorial's table. All ranks make the same calls in the
// same order.
func collectives(ctx context.Context, g *ops.Group, out io.Writer) error {
	rank, size := float32(g.Rank()), g.Size()
	mine := []float32{rank}
	say := func(what string, x []float32) { fmt.Fprintf(out, "rank %d: %s %v\n", g.Rank(), what, x) }

	x := []float32{rank}
	if err := g.Broadcast(ctx, tensor.Of(x), 0).Wait(); err != nil { // rank 0's, to all
		return err
	}
	say("broadcast", x)

	x[0] = rank
	if err := g.Reduce(ctx, tensor.Of(x), tensor.Sum, 0).Wait(); err != nil { // the sum, to rank 0
		return err
	}
	if g.Rank() == 0 {
		say("reduce", x)
	}

	x[0] = rank
	if err := g.AllReduce(ctx, tensor.Of(x), tensor.Sum).Wait(); err != nil { // the sum, to all
		return err
	}
	say("all_reduce", x)

	all, list := make([]float32, size), tensor.Tensor{} // the list is the root's alone to give
	if g.Rank() == 0 {
		list = tensor.Of(all)
	}
	if err := g.Gather(ctx, list, tensor.Of(mine), 0).Wait(); err != nil { // everybody's, to rank 0
		return err
	}
	if g.Rank() == 0 {
		say("gather", all)
	}

	if err := g.Scatter(ctx, tensor.Of(x), list, 0).Wait(); err != nil { // rank 0's parts, one to each
		return err
	}
	say("scatter", x)

	if err := g.AllGather(ctx, tensor.Of(all), tensor.Of(mine)).Wait(); err != nil { // everybody's, to all
		return err
	}
	say("all_gather", all)
	return nil
}
