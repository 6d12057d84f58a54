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
	ctx := context.Background()
	nc, mc, err := mesh.FromEnv()
	check(err)
	n, err := node.Start(ctx, nc)
	check(err)
	defer n.Close()
	m, err := mesh.Join(ctx, n, mc)
	check(err)
	w, err := m.World(ctx)
	check(err)
	x := []float64{1, float64(w.Rank())}
	check(ops.NewGroup(w, ops.Config{}).AllReduce(ctx, tensor.Of(x), tensor.Sum).Wait())
	fmt.Printf("rank %d of %d: the sum is %v\n", w.Rank(), w.Size(), x)
	check(m.Leave(ctx))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
