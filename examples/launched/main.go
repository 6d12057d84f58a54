// Launched is a trainer that somebody else starts, in any number and on any machines:
// its place is in the environment.
//
//	peer launch -n 4 -- go run ./examples/launched
//	srun --ntasks=4 launched        # Slurm's variables are understood, too
package main

import (
	"context"
	"fmt"
	"log"

	"peermesh/mesh"
	"peermesh/node"
	"peermesh/ops"
	"peermesh/ops/tensor"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	nc, mc, err := mesh.FromEnv()
	if err != nil {
		return err
	}
	n, err := node.Start(ctx, nc)
	if err != nil {
		return err
	}
	defer n.Close()
	m, err := mesh.Join(ctx, n, mc)
	if err != nil {
		return err
	}
	defer m.Close() // before its node, or the others would take this peer for dead
	w, err := m.World(ctx)
	if err != nil {
		return err
	}
	if err := work(ctx, w); err != nil {
		w.End(err) // the others learn it
		return err
	}
	return m.Leave(ctx)
}

func work(ctx context.Context, w *mesh.World) error {
	x := []float64{1, float64(w.Rank())}
	if err := ops.NewGroup(w, ops.Config{}).AllReduce(ctx, tensor.Of(x), tensor.Sum).Wait(); err != nil {
		return err
	}
	fmt.Printf("rank %d of %d: the sum is %v\n", w.Rank(), w.Size(), x)
	return nil
}
