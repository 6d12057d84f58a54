package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"time"

	"peermesh/examples/internal/ranks"
	"peermesh/ops"
)

func main() {
	o := options{every: 50, log: func(format string, args ...any) { fmt.Printf(format+"\n", args...) }}
	n := flag.Int("ranks", 1, "ranks that train together, nodes of this process")
	folder := flag.String("src", "net", "folder of the Go distribution's src to learn")
	file := flag.String("text", "", "file to learn instead")
	prompt := flag.String("prompt", "// ", "what the sample begins with")
	flag.IntVar(&o.steps, "steps", 600, "steps to train")
	flag.IntVar(&o.batch, "batch", 32, "windows of a step, of all ranks together")
	flag.IntVar(&o.context, "context", 128, "bytes of a window")
	flag.IntVar(&o.width, "width", 128, "features of a position")
	flag.IntVar(&o.blocks, "blocks", 3, "blocks of the transformer")
	flag.IntVar(&o.threads, "threads", 1, "threads of a rank")
	flag.Float64Var(&o.rate, "rate", 2e-3, "greatest learning rate")
	flag.BoolVar(&o.tied, "tied", false, "the head uses the embedding's table")
	flag.StringVar(&o.save, "save", "", "file to save the model to, as safetensors")
	flag.Parse()
	ctx := context.Background()
	text, err := goSource(ctx, *folder)
	if *file != "" {
		text, err = textFile(*file)
	}
	if err != nil {
		log.Fatal(err)
	}
	if *prompt == "" {
		log.Fatal("a sample begins with at least one byte: -prompt")
	}
	fmt.Printf("%d bytes to learn, %d to be judged by\n", len(text.train), len(text.valid))
	start := time.Now()
	err = ranks.Run(ctx, *n, func(ctx context.Context, g *ops.Group) error {
		net, s, err := train(ctx, g, text, o)
		if err != nil || g.Rank() != 0 {
			return err
		}
		fmt.Printf("%.3f bits per byte of text not seen, %.1f %% of bytes right; %v\n",
			s.Mean()/math.Ln2, 100*s.Accuracy(), time.Since(start).Round(time.Second))
		sample, err := generate(ctx, net, *prompt, 400, 0.7, rand.New(rand.NewPCG(1, 1)))
		fmt.Printf("a sample:\n%s\n", sample)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}
