package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"peermesh/examples/internal/ranks"
	"peermesh/ops"
	"peermesh/trainer/mnist"
)

func main() {
	o := options{log: func(format string, args ...any) { fmt.Printf(format+"\n", args...) }}
	n := flag.Int("ranks", 2, "ranks that train together, nodes of this process")
	dir := flag.String("data", "", "folder of MNIST's four files; found or fetched if empty")
	flag.IntVar(&o.steps, "steps", 400, "steps")
	flag.IntVar(&o.batch, "batch", 128, "samples of a step, of all ranks together")
	flag.Float64Var(&o.rate, "rate", 0.02, "learning rate")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *n, *dir, o); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, n int, dir string, o options) error {
	data, err := mnist.Load(ctx, mnist.Config{Dir: dir})
	if err != nil {
		return err
	}
	start := time.Now()
	return ranks.Run(ctx, n, func(ctx context.Context, g *ops.Group) error {
		_, accuracy, err := train(ctx, g, data, o)
		if err == nil && g.Rank() == 0 {
			o.log("%d ranks, %d steps: %.2f %% of the test images are right; %v", g.Size(), o.steps, 100*accuracy, time.Since(start).Round(100*time.Millisecond))
		}
		return err
	})
}
