package testnet_test

import (
	"context"
	"fmt"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet"
)

// train stands for a stranger's trainer: it averages a gradient over the world, and
// takes a step.
func train(ctx context.Context, g *ops.Group) (float32, error) {
	weight, grad := float32(1), []float32{float32(g.Rank())}
	if err := g.AllReduce(ctx, tensor.Of(grad), tensor.Sum).Wait(); err != nil {
		return 0, err
	}
	return weight - 0.1*grad[0]/float32(g.Size()), nil
}

// A trainer is tested in ten lines, without a socket or a second process.
func Example() {
	net, err := testnet.Start(context.Background(), testnet.Config{Nodes: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer net.Close()
	weights := make([]float32, net.Size())
	err = net.Run(func(g *ops.Group) (err error) {
		weights[g.Rank()], err = train(context.Background(), g)
		return err
	})
	fmt.Println(weights, err)
	// Output: [0.9 0.9 0.9] <nil>
}
