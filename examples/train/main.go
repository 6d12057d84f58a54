// Train trains the ConvNet of PyTorch's DDP article on MNIST for a few steps, on
// ranks that are libp2p nodes of this one process. On nodes of their own (see
// examples/allreduce) they would do the same.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"

	"peermesh/ops"
	"peermesh/testnet"
	"peermesh/trainer"
	"peermesh/trainer/mnist"
	"peermesh/trainer/nn"
)

func main() {
	world, steps := flag.Int("world", 2, "number of ranks"), flag.Int("steps", 150, "steps to train")
	flag.Parse()
	ctx := context.Background()
	data := must(mnist.Load(ctx, mnist.Config{}))
	net := must(testnet.Start(ctx, testnet.Config{Nodes: *world}))
	defer net.Close()
	must(0, net.Run(func(g *ops.Group) error {
		model := must(nn.NewConvNet(nn.Config{Stream: uint64(g.Rank())}))
		ddp := must(trainer.NewDDP(ctx, g, model.Params(), trainer.DDPConfig{}))
		opt := must(trainer.NewAdadelta(model.Params(), trainer.AdadeltaConfig{LR: 0.5}))
		sampler := must(trainer.NewDistributedSampler(data.Train.Len(), g.Size(), g.Rank(), trainer.SamplerConfig{Shuffle: true}))
		step := 0
		for indices := range trainer.Batches(sampler.Indices(), 128/g.Size(), true) {
			must(model.ForwardBackward(ctx, batch(data.Train, indices), ddp.Ready))
			must(0, ddp.Wait())
			must(0, opt.Step())
			if step++; step == *steps {
				break
			}
		}
		test := batch(data.Test, rand.Perm(data.Test.Len())[:2000])
		_, right, err := model.Evaluate(ctx, test)
		fmt.Printf("rank %d: %d of %d test images are right\n", g.Rank(), right, len(test.Y))
		return err
	}))
}

func batch(s *mnist.Set, indices []int) nn.Batch {
	b := nn.Batch{X: make([]float32, len(indices)*mnist.Pixels), Y: make([]uint8, len(indices))}
	s.Fill(b.X, b.Y, indices, 0.1302, 0.3069)
	return b
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
