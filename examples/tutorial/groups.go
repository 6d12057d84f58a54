package main

import (
	"context"
	"fmt"
	"io"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// groups adds up over ranks 0 and 1 only, of three or more.
func groups(ctx context.Context, g *ops.Group, out io.Writer) error {
	pair, err := g.Split(ctx, []int{0, 1}) // every rank calls it, members or not
	if err != nil {
		return err
	}
	x := []float32{1}
	if err := pair.AllReduce(ctx, tensor.Of(x), tensor.Sum).Wait(); err != nil { // nothing, on the others
		return err
	}
	fmt.Fprintf(out, "Rank %d has data %v\n", g.Rank(), x[0])
	return nil
}
