package conform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

var collectives = []part{
	{"AllReduce", calls(allReduce)}, {"ReduceScatterAllGather", calls(reduceScatterAllGather)},
	{"BroadcastReduce", calls(broadcastReduce)}, {"GatherScatter", calls(gatherScatter)},
	{"AllToAll", calls(allToAll)}, {"Barrier", calls(barrier)}, {"Pairs", calls(pairs)},
	{"Any", calls(fromAny)}, {"Split", calls(split)}, {"Objects", calls(objects)},
	{"Mismatch", mismatch}, {"Failure", failure},
}

// Collectives runs every kind of operation of package ops on groups over the
// worlds, with some algorithms and sizes, and checks what each rank ends with.
func Collectives(t *testing.T, worlds Make) { run(t, collectives, worlds, false) }

// VirtualCollectives is to Collectives what VirtualTransport is to Transport.
func VirtualCollectives(t *testing.T, worlds Make) { run(t, collectives, worlds, true) }

// sizes of worlds: a pair, one that is no power of two, and one that is.
var sizes = []int{2, 3, 4}

// lengths of tensors: none, less than a rank each, and several pieces.
var lengths = []int{0, 3, 5000}

// calls is a part in which every rank calls f, in worlds of several sizes.
func calls(f func(ctx context.Context, g *ops.Group) error) func(t *testing.T, worlds Make) {
	return func(t *testing.T, worlds Make) {
		for _, n := range sizes {
			for r, err := range each(within(t), worlds(t, n), ending(f)) {
				if err != nil {
					t.Errorf("rank %d of %d: %v", r, n, err)
				}
			}
		}
	}
}

// each runs f on a group of every end's.
func each(ctx context.Context, ends []ops.Transport, f func(ctx context.Context, g *ops.Group, end ops.Transport) error) []error {
	errs := make([]error, len(ends))
	var wg sync.WaitGroup
	for r, end := range ends {
		wg.Go(func() { errs[r] = f(ctx, ops.NewGroup(end, ops.Config{}), end) })
	}
	wg.Wait()
	return errs
}

// ending ends the world of a rank that fails, so that the others do not wait.
func ending(f func(ctx context.Context, g *ops.Group) error) func(context.Context, *ops.Group, ops.Transport) error {
	return func(ctx context.Context, g *ops.Group, end ops.Transport) error {
		err := f(ctx, g)
		if err != nil {
			end.End(err)
		}
		return err
	}
}

// values are n numbers of a rank's own.
func values(rank, n int) []int64 {
	x := make([]int64, n)
	for i := range x {
		x[i] = int64((rank + 1) * (i%97 + 1))
	}
	return x
}

// total is what the values of all n ranks sum up to, at every place.
func total(ranks, n int) []int64 {
	x := make([]int64, n)
	for r := range ranks {
		for i, v := range values(r, n) {
			x[i] += v
		}
	}
	return x
}

// want compares.
func want(what string, got, should []int64) error {
	if !slices.Equal(got, should) {
		return fmt.Errorf("conform: %s of %d elements ended otherwise", what, len(should))
	}
	return nil
}

func allReduce(ctx context.Context, g *ops.Group) error {
	for _, n := range lengths {
		x := values(g.Rank(), n)
		f := make([]float32, n)
		for i := range f {
			f[i] = float32(g.Rank() + 1)
		}
		a, b := g.AllReduce(ctx, tensor.Of(x), tensor.Sum), g.AllReduce(ctx, tensor.Of(f), tensor.Max)
		if err := errors.Join(a.Wait(), b.Wait(), want("all_reduce", x, total(g.Size(), n))); err != nil {
			return err
		}
		for _, v := range f {
			if v != float32(g.Size()) {
				return fmt.Errorf("conform: the maximum is %v", v)
			}
		}
	}
	return nil
}

func reduceScatterAllGather(ctx context.Context, g *ops.Group) error {
	for _, n := range lengths {
		mine, all := make([]int64, n), make([]int64, n*g.Size())
		if err := g.ReduceScatter(ctx, tensor.Of(mine), tensor.Of(values(g.Rank(), n*g.Size())), tensor.Sum).Wait(); err != nil {
			return err
		}
		sum := total(g.Size(), n*g.Size())
		if err := want("reduce_scatter", mine, sum[g.Rank()*n:(g.Rank()+1)*n]); err != nil {
			return err
		}
		err := g.AllGather(ctx, tensor.Of(all), tensor.Of(mine)).Wait()
		if err := errors.Join(err, want("all_gather", all, sum)); err != nil {
			return err
		}
	}
	return nil
}

func broadcastReduce(ctx context.Context, g *ops.Group) error {
	for root := range g.Size() {
		for _, n := range lengths {
			x := values(g.Rank(), n)
			if err := g.Reduce(ctx, tensor.Of(x), tensor.Sum, root).Wait(); err != nil {
				return err
			}
			if g.Rank() == root {
				if err := want("reduce", x, total(g.Size(), n)); err != nil {
					return err
				}
			}
			err := g.Broadcast(ctx, tensor.Of(x), root).Wait()
			if err := errors.Join(err, want("broadcast", x, total(g.Size(), n))); err != nil {
				return err
			}
		}
	}
	return nil
}

func gatherScatter(ctx context.Context, g *ops.Group) error {
	root, n := g.Size()-1, 1000
	var all tensor.Tensor
	if g.Rank() == root {
		all = tensor.Of(make([]int64, n*g.Size()))
	}
	mine := make([]int64, n)
	if err := g.Gather(ctx, all, tensor.Of(values(g.Rank(), n)), root).Wait(); err != nil {
		return err
	}
	err := g.Scatter(ctx, tensor.Of(mine), all, root).Wait()
	return errors.Join(err, want("gather and scatter", mine, values(g.Rank(), n)))
}

func allToAll(ctx context.Context, g *ops.Group) error {
	const n = 700
	out := make([]int64, n*g.Size())
	if err := g.AllToAll(ctx, tensor.Of(out), tensor.Of(values(g.Rank(), n*g.Size()))).Wait(); err != nil {
		return err
	}
	var should []int64
	for r := range g.Size() {
		should = append(should, values(r, n*g.Size())[g.Rank()*n:(g.Rank()+1)*n]...)
	}
	return want("all_to_all", out, should)
}

func barrier(ctx context.Context, g *ops.Group) error { return g.Barrier(ctx).Wait() }

// pairs sends round the ring, in both directions at once.
func pairs(ctx context.Context, g *ops.Group) error {
	const n = 100_000
	next, last := (g.Rank()+1)%g.Size(), (g.Rank()+g.Size()-1)%g.Size()
	x, y := make([]int64, n), make([]int64, n)
	err := g.Batch(ctx, []ops.P2P{
		{Peer: last, Tag: 1, X: tensor.Of(x)}, {Peer: next, Tag: 2, X: tensor.Of(y)},
		{Send: true, Peer: next, Tag: 1, X: tensor.Of(values(g.Rank(), n))},
		{Send: true, Peer: last, Tag: 2, X: tensor.Of(values(g.Rank(), n))},
	}).Wait()
	return errors.Join(err, want("message", x, values(last, n)), want("message back", y, values(next, n)))
}

// fromAny receives one message of every rank in whatever order they come.
func fromAny(ctx context.Context, g *ops.Group) error {
	if g.Rank() != 0 {
		return g.Send(ctx, tensor.Of(values(g.Rank(), 10)), 0, 5)
	}
	for range g.Size() - 1 {
		x := make([]int64, 10)
		from, err := g.RecvAny(ctx, tensor.Of(x), 5)
		if err := errors.Join(err, want("message from any", x, values(from, 10))); err != nil {
			return err
		}
	}
	return nil
}

// split sums in two groups that work at the same time as the whole.
func split(ctx context.Context, g *ops.Group) error {
	part, err := g.SplitBy(ctx, g.Rank()%2, -g.Rank())
	if err != nil {
		return err
	}
	x, y := []int64{1}, []int64{1}
	a, b := part.AllReduce(ctx, tensor.Of(x), tensor.Sum), g.AllReduce(ctx, tensor.Of(y), tensor.Sum)
	return errors.Join(a.Wait(), b.Wait(), want("sum of a part", x, []int64{int64(part.Size())}), want("sum of all", y, []int64{int64(g.Size())}))
}

func objects(ctx context.Context, g *ops.Group) error {
	got, err := ops.AllGatherObject(ctx, g, fmt.Sprint("rank ", g.Rank()))
	for r, s := range got {
		if s != fmt.Sprint("rank ", r) {
			err = errors.Join(err, fmt.Errorf("conform: the object of rank %d is %q", r, s))
		}
	}
	return err
}

// mismatch holds ranks in different operations to the error that says so.
func mismatch(t *testing.T, worlds Make) {
	for r, err := range each(within(t), worlds(t, 2), func(ctx context.Context, g *ops.Group, _ ops.Transport) error {
		return g.AllReduce(ctx, tensor.Of(make([]int64, 10+g.Rank())), tensor.Sum).Wait()
	}) {
		var m *ops.MismatchError
		if !errors.As(err, &m) || m.Ours.Count != uint64(10+r) || m.Theirs.Count != uint64(11-r) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// failure ends a world in mid-operation for everyone.
func failure(t *testing.T, worlds Make) {
	why := errors.New("no disk")
	for r, err := range each(within(t), worlds(t, 3), ending(func(ctx context.Context, g *ops.Group) error {
		if g.Rank() == 1 {
			return why
		}
		return g.AllReduce(ctx, tensor.Of(make([]int64, 1000)), tensor.Sum).Wait()
	})) {
		if err == nil || !strings.Contains(err.Error(), why.Error()) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}
