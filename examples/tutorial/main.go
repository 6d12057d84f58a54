package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"slices"

	"peermesh/mesh"
	"peermesh/node"
	"peermesh/ops"
)

// A step is what each rank does once the group stands. What it prints goes to out.
type step func(ctx context.Context, g *ops.Group, out io.Writer) error

var steps = map[string]step{
	"blocking": blocking, "immediate": immediate, "collectives": collectives,
	"groups": groups, "ring": ring, "average": average, "ddp": ddp,
}

// initProcess finds the other processes and runs a step with them.
func initProcess(ctx context.Context, run step) error {
	nc, mc, err := mesh.FromEnv() // the place that the launcher gave this process
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
	w, err := m.World(ctx) // blocks until all are here
	if err != nil {
		return err
	}
	if err := run(ctx, ops.NewGroup(w, ops.Config{}), os.Stdout); err != nil {
		return err
	}
	return m.Leave(ctx) // what was sent is delivered
}

func main() {
	if len(os.Args) != 2 || steps[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: peer launch -n N -- go run ./examples/tutorial STEP\nsteps:", slices.Sorted(maps.Keys(steps)))
		os.Exit(2)
	}
	if err := initProcess(context.Background(), steps[os.Args[1]]); err != nil {
		log.Fatal(err)
	}
}
