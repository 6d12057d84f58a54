package main

import (
	"context"
	"fmt"
	"io"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// blocking sends a number from rank 0 to rank 1, and waits until that is done.
func blocking(ctx context.Context, g *ops.Group, out io.Writer) error {
	x := []float32{0}
	switch g.Rank() {
	case 0:
		x[0]++
		if err := g.Send(ctx, tensor.Of(x), 1, 0); err != nil { // to rank 1, with tag 0
			return err
		}
	case 1:
		if err := g.Recv(ctx, tensor.Of(x), 0, 0); err != nil { // from rank 0
			return err
		}
	}
	fmt.Fprintf(out, "Rank %d has data %v\n", g.Rank(), x[0])
	return nil
}

// immediate does the same, and other things meanwhile.
func immediate(ctx context.Context, g *ops.Group, out io.Writer) error {
	x := []float32{0}
	var work *ops.Work
	switch g.Rank() {
	case 0:
		x[0]++
		work = g.Isend(ctx, tensor.Of(x), 1, 0)
		fmt.Fprintln(out, "Rank 0 started sending")
	case 1:
		work = g.Irecv(ctx, tensor.Of(x), 0, 0)
		fmt.Fprintln(out, "Rank 1 started receiving")
	default:
		return nil
	}
	if err := work.Wait(); err != nil { // until then x is not ours: neither write nor read it
		return err
	}
	fmt.Fprintf(out, "Rank %d has data %v\n", g.Rank(), x[0])
	return nil
}
