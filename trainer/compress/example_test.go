package compress_test

import (
	"context"
	"fmt"
	"sync"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
	"peermesh/trainer/compress"
)

// Two ranks average a gradient in eight bits an element.
func Example() {
	var all sync.WaitGroup
	for rank, world := range memnet.New(2) {
		all.Go(func() {
			param := &trainer.Param{Name: "w", Value: tensor.New(tensor.Float32, 4), Grad: tensor.New(tensor.Float32, 4)}
			params := []*trainer.Param{param}
			ddp, err := trainer.NewDDP(context.Background(), ops.NewGroup(world, ops.Config{}), params,
				trainer.DDPConfig{Hook: &compress.Coded{Codec: compress.Int8(0)}})
			if err != nil {
				fmt.Println(err)
				return
			}
			grad, _ := tensor.Data[float32](param.Grad)
			copy(grad, []float32{1, 2, 3, float32(rank)})
			ddp.Ready(0)
			if err := ddp.Wait(); err != nil {
				fmt.Println(err)
				return
			}
			if rank == 0 {
				fmt.Printf("%.2f\n", grad)
			}
		})
	}
	all.Wait()
	// Output: [0.99 2.01 3.00 0.50]
}

// A codec by itself: blocks of elements become bytes, and come back nearly as they were.
func ExampleInt8() {
	x := []float32{1, -0.5, 0.25, 0}
	codec := compress.Int8(4)
	p := make([]byte, ops.EncodedBytes(codec, len(x)))
	codec.Encode32(p, x)
	codec.Decode32(x, p)
	fmt.Printf("%d bytes: %.3f\n", len(p), x)
	// Output: 8 bytes: [1.000 -0.504 0.252 0.000]
}
