package ops_test

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"

	"peermesh/ops"
	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

var (
	dtypes     = []tensor.DType{tensor.Float32, tensor.Int32, tensor.Uint8}
	reductions = []tensor.Op{tensor.Sum, tensor.Product, tensor.Min, tensor.Max}
	algorithms = map[ops.Kind][]string{
		ops.KindAllReduce:     {"", "ring", "halving", "doubling", "binomial"},
		ops.KindReduceScatter: {"", "ring"},
		ops.KindAllGather:     {"", "ring"},
	}
)

// inputs are every rank's x.
func inputs(t tensor.DType, world, n int) []tensor.Tensor {
	xs := make([]tensor.Tensor, world)
	for r := range xs {
		xs[r] = filled(t, n, uint64(r*1000+n), true)
	}
	return xs
}

// want compares a tensor with what one machine computes.
func want(what string, got, want tensor.Tensor) error {
	if !bytes.Equal(bytesOf(got), bytesOf(want)) {
		return fmt.Errorf("%s: got a wrong result", what)
	}
	return nil
}

func TestAllReduce(t *testing.T) {
	for _, n := range []int{1, 2, 4, 7} {
		for _, algorithm := range algorithms[ops.KindAllReduce] {
			t.Run(fmt.Sprintf("%d/%s", n, algorithm), func(t *testing.T) {
				t.Parallel()
				check(t, world(n, ops.Config{Algorithm: algorithm}, func(g *ops.Group) error {
					for _, dt := range []tensor.DType{tensor.Float32, tensor.Int64} {
						for _, op := range reductions {
							for _, size := range []int{0, 1, n - 1, n + 1, 1000} {
								xs := inputs(dt, n, size)
								x := clone(xs[g.Rank()])
								if err := g.AllReduce(ctx, x, op).Wait(); err != nil {
									return err
								}
								if err := want(fmt.Sprintf("%v %v %d", dt, op, size), x, folded(xs, op)); err != nil {
									return err
								}
							}
						}
					}
					return nil
				}))
			})
		}
	}
}

// Large enough for several lanes, for sends apart, and for a chunk that comes
// in while it goes out.
func TestAllReduceLarge(t *testing.T) {
	for _, algorithm := range algorithms[ops.KindAllReduce] {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			const n, size = 4, 100_003
			xs := inputs(tensor.Float32, n, size)
			sum := folded(xs, tensor.Sum)
			check(t, world(n, ops.Config{Algorithm: algorithm, Lanes: 3}, func(g *ops.Group) error {
				x := clone(xs[g.Rank()])
				if err := g.AllReduce(ctx, x, tensor.Sum).Wait(); err != nil {
					return err
				}
				return want("sum", x, sum)
			}))
		})
	}
}

// The bits of a float sum depend on the algorithm, and on nothing else.
func TestBitsDoNotDependOnLanes(t *testing.T) {
	for _, algorithm := range []string{"ring", "halving", "doubling", "binomial"} {
		var first []byte
		for _, lanes := range []int{1, 2, 5, ops.MaxLanes} {
			for n, size := 5, 10_007; ; {
				results := make([][]byte, n)
				check(t, world(n, ops.Config{Algorithm: algorithm, Lanes: lanes}, func(g *ops.Group) error {
					x := filled(tensor.Float32, size, uint64(g.Rank()), false)
					err := g.AllReduce(ctx, x, tensor.Sum).Wait()
					results[g.Rank()] = bytesOf(x)
					return err
				}))
				if first == nil {
					first = results[0]
				}
				for r, p := range results {
					if !bytes.Equal(p, first) {
						t.Errorf("%s, %d lanes: rank %d has other bits", algorithm, lanes, r)
					}
				}
				break
			}
		}
	}
}

func TestBroadcastAndReduce(t *testing.T) {
	for n := 1; n <= 6; n++ {
		for _, dt := range []tensor.DType{tensor.Float32, tensor.Uint8} {
			check(t, world(n, ops.Config{}, func(g *ops.Group) error {
				for root := range n {
					for _, size := range []int{0, 1, 1000} {
						xs := inputs(dt, n, size)
						x := clone(xs[g.Rank()])
						if err := g.Reduce(ctx, x, tensor.Sum, root).Wait(); err != nil {
							return err
						}
						expect := xs[g.Rank()] // the others' stay
						if g.Rank() == root {
							expect = folded(xs, tensor.Sum)
						}
						if err := want("reduce", x, expect); err != nil {
							return err
						}
						x = clone(xs[g.Rank()])
						if err := g.Broadcast(ctx, x, root).Wait(); err != nil {
							return err
						}
						if err := want("broadcast", x, xs[root]); err != nil {
							return err
						}
					}
				}
				return nil
			}))
		}
	}
}

func TestGatherAndScatter(t *testing.T) {
	for n := 1; n <= 6; n++ {
		for _, algorithm := range algorithms[ops.KindAllGather] {
			for _, dt := range dtypes {
				check(t, world(n, ops.Config{Algorithm: algorithm}, func(g *ops.Group) error {
					for _, part := range []int{0, 1, 333} {
						parts := inputs(dt, n, part)
						out := tensor.New(dt, n*part)
						if err := g.AllGather(ctx, out, parts[g.Rank()]).Wait(); err != nil {
							return err
						}
						for r, p := range parts {
							if err := want("all_gather", out.Slice(r*part, (r+1)*part), p); err != nil {
								return err
							}
						}
						wholes := inputs(dt, n, n*part)
						in := clone(wholes[g.Rank()])
						sums := tensor.New(dt, part)
						if err := g.ReduceScatter(ctx, sums, in, tensor.Sum).Wait(); err != nil {
							return err
						}
						mine := folded(wholes, tensor.Sum).Slice(g.Rank()*part, (g.Rank()+1)*part)
						if err := want("reduce_scatter", sums, mine); err != nil {
							return err
						}
						if err := want("reduce_scatter's input", in, wholes[g.Rank()]); err != nil {
							return err
						}
					}
					return nil
				}))
			}
		}
	}
}

func TestBarrier(t *testing.T) {
	const n, rounds = 5, 50
	var entered atomic.Int32
	check(t, world(n, ops.Config{}, func(g *ops.Group) error {
		for i := 1; i <= rounds; i++ {
			entered.Add(1)
			if err := g.Barrier(ctx).Wait(); err != nil {
				return err
			}
			if got := entered.Load(); got < int32(i*n) {
				return fmt.Errorf("left barrier %d when %d of %d had entered", i, got, i*n)
			}
		}
		return nil
	}))
}

// Works run in the order of issue, however long nobody waits for them.
func TestWorksKeepTheirOrder(t *testing.T) {
	const n, many = 4, 300
	check(t, world(n, ops.Config{}, func(g *ops.Group) error {
		x := tensor.Of([]int64{int64(g.Rank())})
		var works []*ops.Work
		for i := range many {
			works = append(works, g.AllReduce(ctx, x, tensor.Max), g.Broadcast(ctx, x, i%n))
		}
		for _, w := range works {
			<-w.Done()
			if err := w.Wait(); err != nil {
				return err
			}
		}
		if v, _ := tensor.Data[int64](x); v[0] != n-1 {
			return fmt.Errorf("got %d", v[0])
		}
		return nil
	}))
}

func TestRunASchedule(t *testing.T) {
	const n, part = 4, 3
	s := schedule.Pairwise(n)
	check(t, world(n, ops.Config{}, func(g *ops.Group) error {
		x := make([]int32, n*part)
		for i := range x {
			x[i] = int32(100*g.Rank() + i)
		}
		if err := g.Run(ctx, s, tensor.Of(x), tensor.Op{}).Wait(); err != nil {
			return err
		}
		for i, v := range x {
			if from := i / part; v != int32(100*from+part*g.Rank()+i%part) {
				return fmt.Errorf("element %d is %d", i, v)
			}
		}
		return nil
	}))
}

// 2(n−1)/n of the bytes leave each rank: Patarasuk and Yuan's bound.
func TestRingSendsTheLeast(t *testing.T) {
	const n, size = 5, 1003 // does not divide
	worlds := memnet.New(n)
	check(t, on(worlds, ops.Config{Algorithm: "ring"}, func(g *ops.Group) error {
		return g.AllReduce(ctx, tensor.New(tensor.Float64, size), tensor.Sum).Wait()
	}))
	var total int64
	for _, w := range worlds {
		total += w.Sent()
	}
	if want := int64(2 * (n - 1) * size * 8); total != want {
		t.Errorf("sent %d bytes, want %d", total, want)
	}
}
