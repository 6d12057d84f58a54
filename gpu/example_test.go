package gpu_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"peermesh/gpu"
	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// A world of one, with its tensor on a GPU where there is one and on the host where not.
func Example() {
	x := tensor.New(tensor.Float32, 3)
	d, err := gpu.Open(gpu.Config{})
	switch {
	case errors.Is(err, gpu.ErrUnavailable):
	case err != nil:
		log.Fatal(err)
	default:
		defer d.Close()
		if x, err = d.Alloc(tensor.Float32, 3); err != nil {
			log.Fatal(err)
		}
	}
	if err := tensor.Copy(x, tensor.Of([]float32{1, 2, 3})); err != nil {
		log.Fatal(err)
	}
	g := ops.NewGroup(memnet.New(1)[0], ops.Config{})
	if err := g.AllReduce(context.Background(), x, tensor.Sum).Wait(); err != nil {
		log.Fatal(err)
	}
	result := make([]float32, 3)
	if err := tensor.Copy(tensor.Of(result), x); err != nil {
		log.Fatal(err)
	}
	fmt.Println(result)
	// Output: [1 2 3]
}

// Ranks 0 and 2 share a GPU of host a, so that rank 2 leaves NCCL to rank 0.
func ExampleArrange() {
	one, two := [16]byte{1}, [16]byte{2}
	for _, site := range gpu.Arrange([]gpu.Seat{{"a", one}, {"a", two}, {"a", one}, {"b", one}}) {
		fmt.Println(site.Host, site.Heads(), site.Units[0].Ranks)
	}
	// Output:
	// a [0 1] [0 2]
	// b [3] [3]
}
