package gpu_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"peermesh/gpu"
	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/ops/tensor/tensortest"
	"peermesh/testnet/memnet"
)

// A place is where a rank's tensors are: on a device, or on the host.
type place struct {
	d *gpu.Device
}

// put copies elements to where a rank's tensors are.
func (p place) put(t tensor.DType, elements []byte) (tensor.Tensor, error) {
	n := len(elements) / t.Size()
	x := tensor.New(t, n)
	if p.d != nil {
		var err error
		if x, err = p.d.Alloc(t, n); err != nil {
			return x, err
		}
	}
	_, err := x.WriteAt(elements, 0)
	return x, err
}

// drop frees a tensor that put made.
func drop(xs ...tensor.Tensor) (err error) {
	for _, x := range xs {
		if m, ok := x.Memory().(*gpu.Memory); ok {
			err = errors.Join(err, m.Close())
		}
	}
	return err
}

// A trial is an operation's turn: n ranks, each with as many elements for each rank.
type trial struct {
	n, each int
	dtype   tensor.DType
	op      tensor.Op
	inputs  [][]byte // of each rank, each × n elements
}

func newTrial(n, each int, dtype tensor.DType, op tensor.Op) *trial {
	c := &trial{n: n, each: each, dtype: dtype, op: op}
	for r := range n {
		p := make([]byte, each*n*dtype.Size())
		rng := rand.New(rand.NewPCG(uint64(r), uint64(each)))
		for i := range p {
			p[i] = 0
			if i%dtype.Size() == dtype.Size()-1 || dtype.Size() == 1 {
				p[i] = byte(rng.IntN(2)) // bools, small integers, floats without a sum that rounds
			}
		}
		c.inputs = append(c.inputs, p)
	}
	return c
}

// folded is what one machine makes of everyone's elements.
func (c *trial) folded() []byte {
	total := bytes.Clone(c.inputs[0])
	for _, p := range c.inputs[1:] {
		tensortest.Reduce(total, p, c.dtype, c.op)
	}
	return total
}

func (c *trial) part(p []byte, r int) []byte {
	size := c.each * c.dtype.Size()
	return p[r*size : (r+1)*size]
}

// joined is part r of what each rank has.
func (c *trial) joined(r int) (all []byte) {
	for _, p := range c.inputs {
		all = append(all, c.part(p, r)...)
	}
	return all
}

// holds compares a tensor's elements, wherever they are.
func (c *trial) holds(what string, x tensor.Tensor, want []byte) error {
	got := make([]byte, x.Bytes())
	if _, err := x.ReadAt(got, 0); err != nil {
		return err
	}
	if !bytes.Equal(got, want) && !tensortest.Equal(got, want, c.dtype) {
		return fmt.Errorf("%s of %d × %v among %d: got %x…, want %x…", what, c.each, c.dtype, c.n, got[:min(16, len(got))], want[:min(16, len(want))])
	}
	return nil
}

// run tries every collective on one rank.
func (c *trial) run(ctx context.Context, g *ops.Group, at place) error {
	r := g.Rank()
	mine := c.inputs[r]
	x, err := at.put(c.dtype, mine)
	whole, e1 := at.put(c.dtype, make([]byte, len(mine)))
	part, e2 := at.put(c.dtype, make([]byte, len(mine)/c.n))
	if err := errors.Join(err, e1, e2); err != nil {
		return err
	}
	reset := func() error { _, err := x.WriteAt(mine, 0); return err }
	last := c.n - 1
	list := make([]tensor.Tensor, c.n)
	for i := range list {
		list[i] = whole.Slice(i*c.each, (i+1)*c.each)
	}
	err = errors.Join(
		g.ReduceScatter(ctx, part, x, c.op).Wait(), c.holds("reduce_scatter", part, c.part(c.folded(), r)),
		g.AllReduce(ctx, x, c.op).Wait(), c.holds("all_reduce", x, c.folded()), reset(),
		g.AllReduceCoalesced(ctx, []tensor.Tensor{x.Slice(0, c.each), x.Slice(c.each, x.Len())}, c.op).Wait(),
		c.holds("all_reduce coalesced", x, c.folded()), reset(),
		g.AllToAll(ctx, whole, x).Wait(), c.holds("all_to_all", whole, c.joined(r)),
		c.scatter(ctx, g, part, x), c.holds("scatter", part, c.part(c.inputs[last], r)),
		g.AllGather(ctx, whole, x.Slice(0, c.each)).Wait(), c.holds("all_gather", whole, c.joined(0)),
		g.AllGatherList(ctx, list, x.Slice(x.Len()-c.each, x.Len())).Wait(), c.holds("all_gather list", whole, c.joined(last)),
		g.Reduce(ctx, x, c.op, last).Wait(),
	)
	want := mine
	if r == last {
		want = c.folded()
	}
	err = errors.Join(err, c.holds("reduce", x, want), reset(), c.rooted(ctx, g, x, whole), reset(),
		g.Broadcast(ctx, x, last).Wait(), c.holds("broadcast", x, c.inputs[last]))
	return errors.Join(err, drop(x, whole, part))
}

// scatter deals out what the last rank has.
func (c *trial) scatter(ctx context.Context, g *ops.Group, part, x tensor.Tensor) error {
	if g.Rank() != c.n-1 {
		x = tensor.Tensor{}
	}
	return g.Scatter(ctx, part, x, c.n-1).Wait()
}

// rooted gathers, and sends round a ring.
func (c *trial) rooted(ctx context.Context, g *ops.Group, x, whole tensor.Tensor) error {
	var out tensor.Tensor
	if g.Rank() == 0 {
		out = whole
	}
	if err := g.Gather(ctx, out, x.Slice(0, c.each), 0).Wait(); err != nil {
		return err
	}
	if g.Rank() == 0 {
		if err := c.holds("gather", whole, c.joined(0)); err != nil {
			return err
		}
	}
	if c.n == 1 {
		return nil
	}
	sent := g.Isend(ctx, x, (g.Rank()+1)%c.n, 0)
	before := (g.Rank() + c.n - 1) % c.n
	err := errors.Join(g.Irecv(ctx, whole, before, 0).Wait(), sent.Wait())
	return errors.Join(err, c.holds("recv", whole, c.inputs[before]))
}

// devices opens one for each rank but the odd ones of a mixed world, whose are none.
func devices(t *testing.T, n int, mixed bool, c gpu.Config) []place {
	t.Helper()
	if _, err := gpu.Devices(); errors.Is(err, gpu.ErrUnavailable) {
		t.Skip(err)
	}
	places := make([]place, n)
	for r := range places {
		if mixed && r%2 == 1 {
			continue
		}
		c.Ordinal = r / 2 // two ranks share a device
		d, err := gpu.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if leaks := d.Leaks(); len(leaks) > 0 && !t.Failed() {
				t.Errorf("left on %v: %v", d, leaks)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		places[r].d = d
	}
	return places
}

// everyone runs f on all ranks of a world.
func everyone(places []place, f func(g *ops.Group, at place) error) []error {
	errs := make([]error, len(places))
	var all sync.WaitGroup
	for r, w := range memnet.New(len(places)) {
		g := ops.NewGroup(w, ops.Config{})
		all.Go(func() { errs[r] = f(g, places[r]) })
	}
	all.Wait()
	return errs
}

// TestCollectives tries every collective with every type and reduction in worlds of one
// to four, all of whose tensors are on devices, or those of every other rank.
func TestCollectives(t *testing.T) {
	for n := 1; n <= 4; n++ {
		for _, mixed := range []bool{false, true} {
			if mixed && n%2 == 1 {
				continue
			}
			t.Run(fmt.Sprintf("%d ranks, mixed %v", n, mixed), func(t *testing.T) {
				places := devices(t, n, mixed, gpu.Config{Chunk: 2048, Depth: 2})
				for r, err := range everyone(places, func(g *ops.Group, at place) error {
					return matrix(t.Context(), g, at, n)
				}) {
					if err != nil {
						t.Errorf("rank %d: %v", r, err)
					}
				}
			})
		}
	}
}

// matrix is all types and reductions, of no elements, few and several chunks.
func matrix(ctx context.Context, g *ops.Group, at place, n int) error {
	for _, dtype := range tensortest.DTypes() {
		for i, op := range tensortest.Ops(dtype) {
			if op.Steps() {
				continue // TestAverage
			}
			for _, each := range []int{0, 3, 1500} {
				if i > 0 && each != 3 || each > 1000 && dtype.Size() == 8 {
					continue
				}
				if err := newTrial(n, each, dtype, op).run(ctx, g, at); err != nil {
					return fmt.Errorf("%v: %w", op, err)
				}
			}
		}
	}
	return nil
}
