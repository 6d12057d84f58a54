package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"time"

	"peermesh/examples/internal/ranks"
	"peermesh/ops"
)

func main() {
	o := options{log: func(format string, args ...any) { fmt.Printf(format+"\n", args...) }}
	n := flag.Int("ranks", 1, "ranks that train together, nodes of this process")
	dir := flag.String("data", "", "folder of Fashion-MNIST's four files; found by itself if empty")
	flag.IntVar(&o.epochs, "epochs", 3, "times through the training set")
	flag.IntVar(&o.steps, "steps", 0, "steps at most; 0: all of the epochs")
	flag.IntVar(&o.batch, "batch", 128, "samples of a step, of all ranks together")
	flag.IntVar(&o.blocks, "blocks", 1, "residual blocks of a stage: the network has 6 times that and 2 layers")
	flag.IntVar(&o.threads, "threads", 1, "threads of a rank")
	flag.Float64Var(&o.rate, "rate", 0.1, "greatest learning rate")
	flag.StringVar(&o.save, "save", "", "file to save the model to, as safetensors")
	flag.Parse()
	ctx := context.Background()
	data, err := load(ctx, *dir)
	if err != nil {
		log.Fatal(err)
	}
	start := time.Now()
	err = ranks.Run(ctx, *n, func(ctx context.Context, g *ops.Group) error {
		s, err := train(ctx, g, data, o)
		if err == nil && g.Rank() == 0 {
			fmt.Printf("%d of %d test images are right, %.2f %%; %v\n", s.Right, s.Count, 100*s.Accuracy(), time.Since(start).Round(time.Second))
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}
