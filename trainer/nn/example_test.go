package nn_test

import (
	"context"
	"fmt"
	"log"

	"peermesh/trainer"
	"peermesh/trainer/nn"
)

// stripes are n images of the digits' size whose label says which row is bright.
func stripes(n int) nn.Batch {
	b := nn.Batch{X: make([]float32, n*nn.Side*nn.Side), Y: make([]uint8, n)}
	for i := range b.Y {
		b.Y[i] = uint8(i % nn.Classes)
		row := b.X[(i*nn.Side+4+2*int(b.Y[i]))*nn.Side:][:nn.Side]
		for j := range row {
			row[j] = 2
		}
	}
	return b
}

// A whole training loop. With more than one rank, ready and a DDP stand between
// backward and Step.
func Example() {
	ctx := context.Background()
	net, err := nn.NewTutorial(nn.Config{Seed: 1234})
	if err != nil {
		log.Fatal(err)
	}
	sgd, err := trainer.NewSGD(net.Params(), trainer.SGDConfig{LR: 0.05, Momentum: 0.5})
	if err != nil {
		log.Fatal(err)
	}
	batch := stripes(20)
	for range 40 {
		if _, err := net.ForwardBackward(ctx, batch, nil); err != nil {
			log.Fatal(err)
		}
		if err := sgd.Step(); err != nil {
			log.Fatal(err)
		}
	}
	_, correct, err := net.Evaluate(ctx, batch)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(correct, "of", len(batch.Y), "right")
	// Output: 20 of 20 right
}

// Gradients come out last layer first, so that averaging them can overlap with
// the rest of backward.
func ExampleNet_ForwardBackward() {
	net, err := nn.NewConvNet(nn.Config{})
	if err != nil {
		log.Fatal(err)
	}
	params := net.Params()
	_, err = net.ForwardBackward(context.Background(), stripes(2), func(i int) {
		fmt.Println(params[i].Name, params[i].Grad.Shape())
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// fc2.bias [10]
	// fc2.weight [10 64]
	// fc1.bias [64]
	// fc1.weight [64 4608]
	// conv2.bias [32]
	// conv2.weight [32 16 3 3]
	// conv1.bias [16]
	// conv1.weight [16 1 3 3]
}
