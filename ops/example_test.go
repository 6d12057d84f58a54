package ops_test

import (
	"fmt"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// Four ranks add up a vector each.
func Example() {
	sums := make([][]float32, 4)
	errs := on(memnet.New(4), ops.Config{}, func(g *ops.Group) error {
		x := []float32{1, float32(g.Rank())}
		sums[g.Rank()] = x
		return g.AllReduce(ctx, tensor.Of(x), tensor.Sum).Wait()
	})
	fmt.Println(sums, errs)
	// Output: [[4 6] [4 6] [4 6] [4 6]] [<nil> <nil> <nil> <nil>]
}

// Rank 0 sends to rank 1 under tag 7.
func ExampleGroup_Send() {
	errs := on(memnet.New(2), ops.Config{}, func(g *ops.Group) error {
		x := tensor.Of([]float64{3.5})
		if g.Rank() == 0 {
			return g.Send(ctx, x, 1, 7)
		}
		y := []float64{0}
		err := g.Recv(ctx, tensor.Of(y), 0, 7)
		fmt.Println("got", y)
		return err
	})
	fmt.Println(errs)
	// Output:
	// got [3.5]
	// [<nil> <nil>]
}
