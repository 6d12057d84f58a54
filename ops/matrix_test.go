package ops_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"testing"

	"peermesh/ops"
	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
	"peermesh/ops/tensor/tensortest"
	"peermesh/testnet/memnet"
)

var wholeMatrix = flag.Bool("matrix", false, "try every operation × type × reduction × world × size × algorithm, which takes minutes")

// A cell is what an operation of the matrix works on, the same on all ranks, and what
// one machine makes of it: exact numbers, or else those of a deterministic group.
type cell struct {
	n             int
	dtype         tensor.DType
	red           reduction
	size          int // elements of a rank's part
	deterministic bool

	parts  func() []tensor.Tensor // of each rank, of size elements
	wholes func() []tensor.Tensor // of each rank, of size elements for each rank
	total  func() []byte          // of the parts
	dealt  func() []byte          // of the wholes
}

// An operation runs a cell's operation on one rank and compares its result.
type operation struct {
	name    string
	kind    ops.Kind
	reduces bool
	run     func(g *ops.Group, c *cell) error
}

// operations are all that move tensors.
var operations = []operation{
	{"all_reduce", ops.KindAllReduce, true, runAllReduce},
	{"all_reduce coalesced", ops.KindAllReduce, true, runAllReduceCoalesced},
	{"reduce", ops.KindReduce, true, runReduce},
	{"reduce_scatter", ops.KindReduceScatter, true, runReduceScatter},
	{"reduce_scatter list", ops.KindReduceScatter, true, runReduceScatterList},
	{"broadcast", ops.KindBroadcast, false, runBroadcast},
	{"all_gather", ops.KindAllGather, false, runAllGather},
	{"all_gather list", ops.KindAllGather, false, runAllGatherList},
	{"all_gather coalesced", ops.KindAllGather, false, runAllGatherCoalesced},
	{"gather", ops.KindGather, false, runGather},
	{"gather list", ops.KindGatherList, false, runGatherList},
	{"scatter", ops.KindScatter, false, runScatter},
	{"scatter list", ops.KindScatterList, false, runScatterList},
	{"all_to_all", ops.KindAllToAll, false, runAllToAll},
	{"all_to_all v", ops.KindAllToAllV, false, runAllToAllV},
	{"all_to_all list", ops.KindAllToAllV, false, runAllToAllList},
}

func (c *cell) String() string {
	return fmt.Sprintf("%v × %d among %d, %s, deterministic %v", c.dtype, c.size, c.n, c.red.name, c.deterministic)
}

// each is every rank's tensor of a count: exact for any order of sums, or of numbers
// that round.
func (c *cell) each(count int) func() []tensor.Tensor {
	return sync.OnceValue(func() []tensor.Tensor {
		if !c.deterministic {
			return sample(c.dtype, c.n, count)
		}
		xs := make([]tensor.Tensor, c.n)
		for r := range xs {
			rng := rand.New(rand.NewPCG(uint64(r), uint64(count)))
			xs[r] = tensor.New(c.dtype, count)
			if p, _ := xs[r].View(0, xs[r].Bytes()); c.dtype == tensor.Float32 || c.dtype == tensor.Float64 {
				_ = tensor.Copy(xs[r], filled(c.dtype, count, rng.Uint64(), false))
			} else {
				tensortest.Fill(p, c.dtype, rng)
				_, _ = xs[r].WriteAt(p, 0) // makes bools of the bytes
			}
		}
		return xs
	})
}

// sum is what one machine makes of xs, in the canonical order.
func (c *cell) sum(xs []tensor.Tensor) []byte {
	parts := make([][]byte, len(xs))
	for r, x := range xs {
		parts[r] = bytesOf(x)
		if c.red.factor != nil {
			tensortest.Scale(parts[r], c.dtype, c.red.factor(r))
		}
	}
	total := schedule.Fold(parts, func(a, b []byte) []byte {
		tensortest.Reduce(a, b, c.dtype, c.red.op(0))
		return a
	})
	if c.red.op(0) == tensor.Avg {
		tensortest.Divide(total, c.dtype, len(xs))
	}
	return total
}

// part is elements [lo, hi) of bytes.
func (c *cell) part(p []byte, lo, hi int) []byte { return p[lo*c.dtype.Size() : hi*c.dtype.Size()] }

// equal compares bits, and holds any two NaN for one.
func (c *cell) equal(what string, got tensor.Tensor, want []byte) error {
	if p := bytesOf(got); !bytes.Equal(p, want) && !tensortest.Equal(p, want, c.dtype) {
		return fmt.Errorf("%s: got %x…, want %x…", what, p[:min(len(p), 16)], want[:min(len(want), 16)])
	}
	return nil
}

// cut is where uneven parts of size elements in all begin: none of them, some large.
func (c *cell) cut() []int {
	at := make([]int, c.n+1)
	for r := range c.n {
		at[r+1] = c.size * (r + 1) * (r + 1) / (c.n * c.n)
	}
	return at
}

// pieces cuts x there.
func pieces(x tensor.Tensor, at []int) []tensor.Tensor {
	all := make([]tensor.Tensor, len(at)-1)
	for i := range all {
		all[i] = x.Slice(at[i], at[i+1])
	}
	return all
}

// TestMatrix tries every operation, in short a few of its combinations.
func TestMatrix(t *testing.T) {
	every := 503
	if *wholeMatrix {
		every = 1
	} else if raceDetector {
		every = 1999
	}
	all, tried := 0, 0
	for n := 1; n <= 8; n++ {
		worlds := make(map[ops.Config][]*ops.Group)
		for c := range cells(n) {
			for _, op := range operations {
				if !op.reduces && (c.red.name != "sum" || c.deterministic) {
					continue
				}
				for _, algorithm := range append(ops.AlgorithmNames(op.kind), "") {
					if all++; all%every != 0 || c.size > 1000 && !*wholeMatrix && (raceDetector || all%4 > 0) {
						continue
					}
					tried++
					if !tryCell(t, worlds, op, c, ops.Config{Algorithm: algorithm, Deterministic: c.deterministic}) {
						return
					}
				}
			}
		}
	}
	t.Logf("%d combinations, %d of them tried", all, tried)
}

// cells are all types, reductions and sizes among n ranks.
func cells(n int) iter.Seq[*cell] {
	return func(yield func(*cell) bool) {
		for _, dtype := range tensortest.DTypes() {
			for _, red := range reductionsOf(dtype) {
				for _, size := range []int{0, 1, n - 1, n, n + 1, 1000, 65_537} {
					for _, deterministic := range []bool{false, true} {
						if !yield(newCell(n, dtype, red, size, deterministic)) {
							return
						}
					}
				}
			}
		}
	}
}

func newCell(n int, dtype tensor.DType, red reduction, size int, deterministic bool) *cell {
	c := &cell{n: n, dtype: dtype, red: red, size: size, deterministic: deterministic}
	c.parts, c.wholes = c.each(size), c.each(size*n)
	c.total = sync.OnceValue(func() []byte { return c.sum(c.parts()) })
	c.dealt = sync.OnceValue(func() []byte { return c.sum(c.wholes()) })
	return c
}

// tryCell runs an operation in a world of that configuration, one of those that
// there are or a new one.
func tryCell(t *testing.T, worlds map[ops.Config][]*ops.Group, op operation, c *cell, config ops.Config) bool {
	t.Helper()
	if worlds[config] == nil {
		for _, w := range memnet.New(c.n) {
			worlds[config] = append(worlds[config], ops.NewGroup(w, config))
		}
	}
	check(t, each(worlds[config], func(g *ops.Group) error {
		if err := op.run(g, c); err != nil {
			return fmt.Errorf("%s by %q, %v: %w", op.name, config.Algorithm, c, err)
		}
		return nil
	}))
	return !t.Failed()
}

func runAllReduce(g *ops.Group, c *cell) error {
	x := clone(c.parts()[g.Rank()])
	err := g.AllReduce(ctx, x, c.red.op(g.Rank())).Wait()
	return errors.Join(err, c.equal("x", x, c.total()))
}

func runAllReduceCoalesced(g *ops.Group, c *cell) error {
	x := clone(c.parts()[g.Rank()])
	err := g.AllReduceCoalesced(ctx, pieces(x, c.cut()), c.red.op(g.Rank())).Wait()
	return errors.Join(err, c.equal("xs", x, c.total()))
}

func runReduce(g *ops.Group, c *cell) error {
	for _, dst := range []int{0, c.n - 1} {
		x := clone(c.parts()[g.Rank()])
		want := bytesOf(x)
		if g.Rank() == dst {
			want = c.total()
		}
		err := g.Reduce(ctx, x, c.red.op(g.Rank()), dst).Wait()
		if err = errors.Join(err, c.equal("x", x, want)); err != nil {
			return err
		}
	}
	return nil
}

func runReduceScatter(g *ops.Group, c *cell) error {
	out, in := tensor.New(c.dtype, c.size), clone(c.wholes()[g.Rank()])
	err := g.ReduceScatter(ctx, out, in, c.red.op(g.Rank())).Wait()
	return errors.Join(err, c.equal("in", in, bytesOf(c.wholes()[g.Rank()])),
		c.equal("out", out, c.part(c.dealt(), g.Rank()*c.size, (g.Rank()+1)*c.size)))
}

func runReduceScatterList(g *ops.Group, c *cell) error {
	at := c.cut()
	in := clone(c.parts()[g.Rank()])
	lo, hi := at[g.Rank()], at[g.Rank()+1]
	out := tensor.New(c.dtype, hi-lo)
	err := g.ReduceScatterList(ctx, out, pieces(in, at), c.red.op(g.Rank())).Wait()
	return errors.Join(err, c.equal("in", in, bytesOf(c.parts()[g.Rank()])), c.equal("out", out, c.part(c.total(), lo, hi)))
}

func runBroadcast(g *ops.Group, c *cell) error {
	for _, src := range []int{0, c.n / 2} {
		x := clone(c.parts()[g.Rank()])
		err := g.Broadcast(ctx, x, src).Wait()
		if err = errors.Join(err, c.equal("x", x, bytesOf(c.parts()[src]))); err != nil {
			return err
		}
	}
	return nil
}
