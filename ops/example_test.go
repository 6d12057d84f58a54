package ops_test

import (
	"fmt"
	"time"

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

// Ranks 1 and 3 of four add up what they have; the others do nothing.
func ExampleGroup_Split() {
	sums := make([]int64, 4)
	errs := on(memnet.New(4), ops.Config{}, func(g *ops.Group) error {
		odd, err := g.Split(ctx, []int{1, 3})
		if err != nil {
			return err
		}
		x := []int64{int64(g.Rank())}
		err = odd.AllReduce(ctx, tensor.Of(x), tensor.Sum).Wait()
		sums[g.Rank()] = x[0]
		return err
	})
	fmt.Println(sums, errs)
	// Output: [0 4 2 4] [<nil> <nil> <nil> <nil>]
}

// Even and odd ranks, highest first.
func ExampleGroup_SplitBy() {
	ranks := make([][]int, 4)
	errs := on(memnet.New(4), ops.Config{}, func(g *ops.Group) error {
		half, err := g.SplitBy(ctx, g.Rank()%2, -g.Rank())
		if err == nil {
			ranks[g.Rank()] = half.Ranks()
		}
		return err
	})
	fmt.Println(ranks, errs)
	// Output: [[2 0] [3 1] [2 0] [3 1]] [<nil> <nil> <nil> <nil>]
}

// A group seen by its own ranks: the root is its first member, rank 2 of the world.
func ExampleGroup_Relative() {
	got := make([]int64, 4)
	errs := on(memnet.New(4), ops.Config{}, func(g *ops.Group) error {
		half, err := g.Blocks(ctx, 2)
		if err != nil {
			return err
		}
		x := []int64{int64(g.Rank())}
		err = half.Relative().Broadcast(ctx, tensor.Of(x), 0).Wait()
		got[g.Rank()] = x[0]
		return err
	})
	fmt.Println(got, errs)
	// Output: [0 0 2 2] [<nil> <nil> <nil> <nil>]
}

// Rank 0 takes two numbers from whoever sends.
func ExampleGroup_RecvAny() {
	errs := on(memnet.New(3), ops.Config{}, func(g *ops.Group) error {
		x := []int32{int32(10 * g.Rank())}
		if g.Rank() > 0 {
			return g.Send(ctx, tensor.Of(x), 0, 0)
		}
		sum := int32(0)
		for range 2 {
			if _, err := g.RecvAny(ctx, tensor.Of(x), 0); err != nil {
				return err
			}
			sum += x[0]
		}
		fmt.Println("got", sum)
		return nil
	})
	fmt.Println(errs)
	// Output:
	// got 30
	// [<nil> <nil> <nil>]
}

// Every rank passes its rank on to the next.
func ExampleGroup_Batch() {
	got := make([]int32, 3)
	errs := on(memnet.New(3), ops.Config{}, func(g *ops.Group) error {
		mine, theirs := []int32{int32(g.Rank())}, []int32{0}
		err := g.Batch(ctx, []ops.P2P{
			{Send: true, X: tensor.Of(mine), Peer: (g.Rank() + 1) % 3},
			{X: tensor.Of(theirs), Peer: (g.Rank() + 2) % 3},
		}).Wait()
		got[g.Rank()] = theirs[0]
		return err
	})
	fmt.Println(got, errs)
	// Output: [2 0 1] [<nil> <nil> <nil>]
}

// Rank 1 does not come, and the others learn that it is rank 1.
func ExampleGroup_MonitoredBarrier() {
	errs := on(memnet.New(3), ops.Config{}, func(g *ops.Group) error {
		if g.Rank() == 1 {
			return nil
		}
		return g.MonitoredBarrier(ctx, 10*time.Millisecond, true).Wait()
	})
	fmt.Println(errs[0])
	fmt.Println(errs[2])
	// Output:
	// ops: monitored_barrier #0 (all): missing in time: ranks [1]
	// ops: monitored_barrier #0 (all): missing in time: ranks [1]
}
