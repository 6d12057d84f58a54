package ops_test

import (
	"fmt"
	"sync/atomic"

	"peermesh/ops"
	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// ranks runs f on every rank of a world in memory and returns what each got.
func ranks[T any](n int, f func(g *ops.Group) (T, error)) []T {
	got := make([]T, n)
	for _, err := range on(memnet.New(n), ops.Config{}, func(g *ops.Group) (err error) {
		got[g.Rank()], err = f(g)
		return err
	}) {
		if err != nil {
			panic(err)
		}
	}
	return got
}

// of is a tensor over numbers, for short.
func of(x ...int32) tensor.Tensor { return tensor.Of(x) }

// The mean of a number of each rank.
func ExampleGroup_AllReduce() {
	fmt.Println(ranks(4, func(g *ops.Group) ([]float64, error) {
		x := []float64{float64(g.Rank())}
		return x, g.AllReduce(ctx, tensor.Of(x), tensor.Avg).Wait()
	}))
	// Output: [[1.5] [1.5] [1.5] [1.5]]
}

// Tensors of different sizes in one set of messages.
func ExampleGroup_AllReduceCoalesced() {
	fmt.Println(ranks(2, func(g *ops.Group) ([]int32, error) {
		weight, bias := []int32{1, 2, 3}, []int32{int32(g.Rank())}
		err := g.AllReduceCoalesced(ctx, []tensor.Tensor{tensor.Of(weight), tensor.Of(bias)}, tensor.Sum).Wait()
		return append(weight, bias...), err
	}))
	// Output: [[2 4 6 1] [2 4 6 1]]
}

// Every rank starts from rank 2's number.
func ExampleGroup_Broadcast() {
	fmt.Println(ranks(3, func(g *ops.Group) ([]int32, error) {
		x := []int32{int32(10 * g.Rank())}
		return x, g.Broadcast(ctx, tensor.Of(x), 2).Wait()
	}))
	// Output: [[20] [20] [20]]
}

// The largest number goes to rank 0; the others keep theirs.
func ExampleGroup_Reduce() {
	fmt.Println(ranks(3, func(g *ops.Group) ([]int32, error) {
		x := []int32{int32(g.Rank())}
		return x, g.Reduce(ctx, tensor.Of(x), tensor.Max, 0).Wait()
	}))
	// Output: [[2] [1] [2]]
}

// A row of each rank, stacked.
func ExampleGroup_AllGather() {
	fmt.Println(ranks(2, func(g *ops.Group) ([]int32, error) {
		row, rows := of(int32(g.Rank()), 7), tensor.New(tensor.Int32, 2, 2)
		err := g.AllGather(ctx, rows, row).Wait()
		x, _ := tensor.Data[int32](rows)
		return x, err
	}))
	// Output: [[0 7 1 7] [0 7 1 7]]
}

// Rank 0 has one number to share, rank 1 has two.
func ExampleGroup_AllGatherList() {
	fmt.Println(ranks(2, func(g *ops.Group) ([][]int32, error) {
		out := [][]int32{{0}, {0, 0}}
		in := [][]int32{{5}, {6, 7}}[g.Rank()]
		return out, g.AllGatherList(ctx, []tensor.Tensor{tensor.Of(out[0]), tensor.Of(out[1])}, tensor.Of(in)).Wait()
	}))
	// Output: [[[5] [6 7]] [[5] [6 7]]]
}

// Two all-gathers as one.
func ExampleGroup_AllGatherCoalesced() {
	fmt.Println(ranks(2, func(g *ops.Group) ([][]int32, error) {
		a, b := make([]int32, 2), make([]int32, 4)
		me := int32(g.Rank())
		return [][]int32{a, b}, g.AllGatherCoalesced(ctx,
			[]tensor.Tensor{tensor.Of(a), tensor.Of(b)}, []tensor.Tensor{of(me), of(10+me, 20+me)}).Wait()
	}))
	// Output: [[[0 1] [10 20 11 21]] [[0 1] [10 20 11 21]]]
}

// Each rank keeps its part of the sum.
func ExampleGroup_ReduceScatter() {
	fmt.Println(ranks(2, func(g *ops.Group) ([]int32, error) {
		out := []int32{0, 0}
		return out, g.ReduceScatter(ctx, tensor.Of(out), of(1, 2, 3, 4), tensor.Sum).Wait()
	}))
	// Output: [[2 4] [6 8]]
}

// The same for parts of one number and of three.
func ExampleGroup_ReduceScatterList() {
	fmt.Println(ranks(2, func(g *ops.Group) ([]int32, error) {
		out := make([]int32, 1+2*g.Rank())
		return out, g.ReduceScatterList(ctx, tensor.Of(out), []tensor.Tensor{of(1), of(2, 3, 4)}, tensor.Sum).Wait()
	}))
	// Output: [[2] [4 6 8]]
}

// Rank 1 collects a number of each; the others give none to collect in.
func ExampleGroup_Gather() {
	fmt.Println(ranks(3, func(g *ops.Group) (all []int32, err error) {
		var out tensor.Tensor
		if g.Rank() == 1 {
			all = make([]int32, 3)
			out = tensor.Of(all)
		}
		return all, g.Gather(ctx, out, of(int32(g.Rank())), 1).Wait()
	}))
	// Output: [[] [0 1 2] []]
}

// Rank 0 collects what it knows to be one number of each, but two of rank 2.
func ExampleGroup_GatherList() {
	fmt.Println(ranks(3, func(g *ops.Group) (all []int32, err error) {
		var out []tensor.Tensor
		if g.Rank() == 0 {
			all = make([]int32, 4)
			x := tensor.Of(all)
			out = []tensor.Tensor{x.Slice(0, 1), x.Slice(1, 2), x.Slice(2, 4)}
		}
		in := []tensor.Tensor{of(5), of(6), of(7, 8)}[g.Rank()]
		return all, g.GatherList(ctx, out, in, 0).Wait()
	}))
	// Output: [[5 6 7 8] [] []]
}

// Rank 0 deals out.
func ExampleGroup_Scatter() {
	fmt.Println(ranks(2, func(g *ops.Group) ([]int32, error) {
		out, in := []int32{0, 0}, tensor.Tensor{}
		if g.Rank() == 0 {
			in = of(1, 2, 3, 4)
		}
		return out, g.Scatter(ctx, tensor.Of(out), in, 0).Wait()
	}))
	// Output: [[1 2] [3 4]]
}

// Rank 0 deals out parts of one number and of three.
func ExampleGroup_ScatterList() {
	fmt.Println(ranks(2, func(g *ops.Group) ([]int32, error) {
		out, in := make([]int32, 1+2*g.Rank()), []tensor.Tensor(nil)
		if g.Rank() == 0 {
			in = []tensor.Tensor{of(1), of(2, 3, 4)}
		}
		return out, g.ScatterList(ctx, tensor.Of(out), in, 0).Wait()
	}))
	// Output: [[1] [2 3 4]]
}

// A transposition: rank r's part s becomes rank s's part r.
func ExampleGroup_AllToAll() {
	fmt.Println(ranks(3, func(g *ops.Group) ([]int32, error) {
		out, row := make([]int32, 3), int32(10*g.Rank())
		return out, g.AllToAll(ctx, tensor.Of(out), of(row, row+1, row+2)).Wait()
	}))
	// Output: [[0 10 20] [1 11 21] [2 12 22]]
}

// Rank 0 gives rank 1 two numbers and keeps one; rank 1 gives all of its three.
func ExampleGroup_AllToAllV() {
	fmt.Println(ranks(2, func(g *ops.Group) ([]int32, error) {
		in := []tensor.Tensor{of(1, 2, 3), of(4, 5, 6)}[g.Rank()]
		inSplits := [][]int{{1, 2}, {3, 0}}[g.Rank()]
		outSplits := [][]int{{1, 3}, {2, 0}}[g.Rank()]
		out := make([]int32, outSplits[0]+outSplits[1])
		return out, g.AllToAllV(ctx, tensor.Of(out), in, outSplits, inSplits).Wait()
	}))
	// Output: [[1 4 5 6] [2 3]]
}

// Tensors rather than parts of one.
func ExampleGroup_AllToAllList() {
	fmt.Println(ranks(2, func(g *ops.Group) ([][]int32, error) {
		me := int32(g.Rank())
		out := [][]int32{{0}, {0}}
		return out, g.AllToAllList(ctx, []tensor.Tensor{tensor.Of(out[0]), tensor.Of(out[1])}, []tensor.Tensor{of(me), of(10 + me)}).Wait()
	}))
	// Output: [[[0] [1]] [[10] [11]]]
}

// When one rank has passed, all have come.
func ExampleGroup_Barrier() {
	var come atomic.Int32
	fmt.Println(ranks(3, func(g *ops.Group) (bool, error) {
		come.Add(1)
		err := g.Barrier(ctx).Wait()
		return come.Load() == 3, err
	}))
	// Output: [true true true]
}

// A schedule of one's own: everyone's number goes one rank further.
func ExampleGroup_Run() {
	shift, _ := schedule.Parse("shift: 3 ranks, 1 chunks\n  0   0→1 [0]  1→2 [0]  2→0 [0]\n")
	fmt.Println(ranks(3, func(g *ops.Group) ([]int32, error) {
		x := []int32{int32(g.Rank())}
		return x, g.Run(ctx, shift, tensor.Of(x), tensor.Op{}).Wait()
	}))
	// Output: [[2] [0] [1]]
}

// Rank 1's settings for everyone.
func ExampleBroadcastObject() {
	fmt.Println(ranks(2, func(g *ops.Group) (map[string]float64, error) {
		var settings map[string]float64
		if g.Rank() == 1 {
			settings = map[string]float64{"lr": 0.1}
		}
		return ops.BroadcastObject(ctx, g, settings, 1)
	}))
	// Output: [map[lr:0.1] map[lr:0.1]]
}

// A task for each rank.
func ExampleScatterObject() {
	fmt.Println(ranks(2, func(g *ops.Group) (string, error) {
		var tasks []string
		if g.Rank() == 0 {
			tasks = []string{"read", "write"}
		}
		return ops.ScatterObject(ctx, g, tasks, 0)
	}))
	// Output: [read write]
}

// A report of each rank, to rank 0.
func ExampleGatherObject() {
	fmt.Println(ranks(2, func(g *ops.Group) ([]string, error) {
		return ops.GatherObject(ctx, g, fmt.Sprintf("rank %d is well", g.Rank()), 0)
	}))
	// Output: [[rank 0 is well rank 1 is well] []]
}

// Who is who.
func ExampleAllGatherObject() {
	fmt.Println(ranks(2, func(g *ops.Group) ([]string, error) {
		return ops.AllGatherObject(ctx, g, []string{"ada", "grace"}[g.Rank()])
	}))
	// Output: [[ada grace] [ada grace]]
}

// A value of any type as a message.
func ExampleSendObject() {
	fmt.Println(ranks(2, func(g *ops.Group) ([]string, error) {
		if g.Rank() == 0 {
			return nil, ops.SendObject(ctx, g, []string{"a", "b"}, 1, 0)
		}
		return ops.RecvObject[[]string](ctx, g, 0, 0)
	}))
	// Output: [[] [a b]]
}

// What a group of six would choose from for a broadcast of 4 KiB from rank 2.
func ExampleCandidates() {
	for _, c := range ops.Candidates(ops.KindBroadcast, 6, 2, 4096, ops.DefaultLinks)[:3] {
		fmt.Println(c.Schedule.Algorithm(), len(c.Schedule.Rounds), "rounds", c.Price)
	}
	// Output:
	// binomial 3 rounds 384.576µs
	// two-level 4 rounds 554.336µs
	// direct 4 rounds 703.65µs
}

// Algorithms that give the same bits whatever is chosen add in this order.
func ExampleConfig_deterministic() {
	fmt.Println(schedule.CanonicalOrder(6))
	sums := make([]float32, 6)
	for _, err := range on(memnet.New(6), ops.Config{Deterministic: true}, func(g *ops.Group) error {
		x := []float32{[]float32{1e8, 1, -1e8, 1, 1, 1}[g.Rank()]}
		err := g.AllReduce(ctx, tensor.Of(x), tensor.Sum).Wait()
		sums[g.Rank()] = x[0]
		return err
	}) {
		if err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(sums)
	// Output:
	// ((0+4)+2)+((1+5)+3)
	// [3 3 3 3 3 3]
}
