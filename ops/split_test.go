package ops_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// places checks a group's ranks in the world, and where this process is in it.
func places(g *ops.Group, rank int, want ...int) error {
	if g.Rank() != rank || g.Size() != len(want) || !slices.Equal(g.Ranks(), want) && len(want) > 0 {
		return fmt.Errorf("rank %d of %v, want %d of %v", g.Rank(), g.Ranks(), rank, want)
	}
	for i, w := range want {
		if back, ok := g.Local(w); g.Global(i) != w || back != i || !ok {
			return fmt.Errorf("rank %d is %d in the world, and that is rank %d", i, g.Global(i), back)
		}
	}
	return nil
}

// sum adds up the members' ranks in the world.
func sum(g *ops.Group, self int) (int64, error) {
	x := []int64{int64(self)}
	err := g.AllReduce(ctx, tensor.Of(x), tensor.Sum).Wait()
	return x[0], err
}

func TestNewGroup(t *testing.T) {
	check(t, world(3, ops.Config{}, func(g *ops.Group) error {
		some, err := g.Split(ctx, []int{2, 0})
		if err != nil {
			return err
		}
		if err := places(some, []int{0, -1, 1}[g.Rank()], 0, 2); err != nil {
			return err
		}
		if i, ok := some.Local(1); i != -1 || ok {
			return fmt.Errorf("rank 1 is a member, %d", i)
		}
		total, err := sum(some, g.Rank())
		if want := []int64{2, 1, 2}[g.Rank()]; total != want { // rank 1 keeps its own
			return fmt.Errorf("sum %d, want %d", total, want)
		}
		return err
	}))
}

// In a group that a process is not in, collectives do nothing and messages fail.
func TestNonMember(t *testing.T) {
	check(t, world(3, ops.Config{}, func(g *ops.Group) error {
		some, err := g.Split(ctx, []int{0, 1})
		if err != nil || g.Rank() < 2 {
			return err
		}
		x := tensor.Of([]int32{7})
		for i, w := range []*ops.Work{
			some.AllReduce(ctx, x, tensor.Sum), some.Broadcast(ctx, x, 1), some.Reduce(ctx, x, tensor.Sum, 0),
			some.AllGather(ctx, tensor.New(tensor.Int32, 2), x), some.ReduceScatter(ctx, x, tensor.New(tensor.Int32, 2), tensor.Sum),
			some.Barrier(ctx), some.MonitoredBarrier(ctx, time.Second, true),
		} {
			if err := w.Wait(); err != nil {
				return fmt.Errorf("collective %d: %w", i, err)
			}
		}
		if v, _ := tensor.Data[int32](x); v[0] != 7 {
			return fmt.Errorf("x became %v", v)
		}
		_, err = some.RecvAny(ctx, x, 0)
		for _, err := range []error{some.Send(ctx, x, 0, 0), some.Recv(ctx, x, 0, 0), err, some.Batch(ctx, []ops.P2P{{X: x}}).Wait()} {
			if !errors.Is(err, ops.ErrNotMember) {
				return fmt.Errorf("message: %v", err)
			}
		}
		for _, make := range []func() (*ops.Group, error){
			func() (*ops.Group, error) { return some.Split(ctx, []int{1}) },
			func() (*ops.Group, error) { return some.SplitBy(ctx, 0, 0) },
			func() (*ops.Group, error) { return some.Blocks(ctx, 2) },
			func() (*ops.Group, error) { return some.Enumerate(ctx, [][]int{{1}, {0}}) },
		} {
			nested, err := make()
			if err != nil {
				return err
			}
			if err := places(nested, -1); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Roots and peers are ranks in the world, or in the group when it is relative.
func TestRanksInAGroup(t *testing.T) {
	check(t, world(5, ops.Config{}, func(g *ops.Group) error {
		some, err := g.Split(ctx, []int{1, 3, 4})
		if err != nil || some.Rank() < 0 {
			return err
		}
		for _, c := range []struct {
			g           *ops.Group
			root, other int
			stranger    int
		}{{some, 4, 1, 0}, {some, 4, 1, 2}, {some, 4, 1, -1}, {some, 4, 1, 5}, {some.Relative(), 2, 0, 3}, {some.Relative(), 2, 0, -1}} {
			if err := rooted(c.g, g.Rank(), c.root, c.other); err != nil {
				return err
			}
			x := tensor.Of([]int64{1})
			for _, err := range []error{
				c.g.Broadcast(ctx, x, c.stranger).Wait(), c.g.Reduce(ctx, x, tensor.Sum, c.stranger).Wait(),
				c.g.Send(ctx, x, c.stranger, 0), c.g.Recv(ctx, x, c.stranger, 0),
			} {
				if err == nil || !strings.Contains(err.Error(), fmt.Sprintf(" %d is not ", c.stranger)) {
					return fmt.Errorf("rank %d: %v", c.stranger, err)
				}
			}
		}
		return nil
	}))
}

// rooted has a root broadcast its rank in the world, 4, and send it to another, 1.
func rooted(g *ops.Group, self, root, other int) error {
	x := []int64{int64(self)}
	if err := g.Broadcast(ctx, tensor.Of(x), root).Wait(); err != nil || x[0] != 4 {
		return fmt.Errorf("broadcast %d: %w", x[0], err)
	}
	total := []int64{int64(self)}
	if err := g.Reduce(ctx, tensor.Of(total), tensor.Sum, other).Wait(); err != nil || self == 1 && total[0] != 8 {
		return fmt.Errorf("reduce %d: %w", total[0], err)
	}
	switch self {
	case 4:
		return g.Send(ctx, tensor.Of([]int64{44}), other, 0)
	case 1:
		from, err := g.RecvAny(ctx, tensor.Of(x), 0)
		if err != nil || from != root || x[0] != 44 {
			return fmt.Errorf("got %d from %d: %w", x[0], from, err)
		}
	}
	return nil
}

// Bad lists are errors before anything moves.
func TestBadRanksOfAGroup(t *testing.T) {
	check(t, world(4, ops.Config{}, func(g *ops.Group) error {
		most, err := g.Enumerate(ctx, [][]int{{0, 1, 2}, {3}})
		if err != nil {
			return err
		}
		for _, c := range []struct {
			says string
			make func() (*ops.Group, error)
		}{
			{"rank 1 is given twice", func() (*ops.Group, error) { return g.Split(ctx, []int{1, 0, 1}) }},
			{"rank 4 is not in", func() (*ops.Group, error) { return g.Split(ctx, []int{1, 4}) }},
			{"rank -1 is not in", func() (*ops.Group, error) { return g.Split(ctx, []int{-1}) }},
			{"is not in the group of ranks [", func() (*ops.Group, error) { return most.Split(ctx, []int{(g.Rank() + 3) % 6}) }},
			{"empty", func() (*ops.Group, error) { return g.Split(ctx, nil) }},
			{"size 3 does not divide a group of 4", func() (*ops.Group, error) { return g.Blocks(ctx, 3) }},
			{"size 0", func() (*ops.Group, error) { return g.Blocks(ctx, 0) }},
			{"rank 2 is given twice", func() (*ops.Group, error) { return g.Enumerate(ctx, [][]int{{0, 2}, {2, 3}}) }},
		} {
			if _, err := c.make(); err == nil || !strings.HasPrefix(err.Error(), "ops: split: ") || !strings.Contains(err.Error(), c.says) {
				return fmt.Errorf("%s: got %v", c.says, err)
			}
		}
		return g.Barrier(ctx).Wait()
	}))
}

// Ranks that disagree about the list all get the typed error, and so does what
// they do next in the parent.
func TestDisagreementAboutAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		check(t, world(3, ops.Config{}, func(g *ops.Group) error {
			list := []int{0, 1}
			if g.Rank() == 1 {
				list = []int{1, 2}
			}
			_, err := g.Split(ctx, list)
			var m *ops.MismatchError
			if !errors.As(err, &m) || (m.Rank == 1) == (g.Rank() == 1) || m.Ours == m.Theirs || m.Ours.Kind != ops.KindSplit {
				return fmt.Errorf("got %v", err)
			}
			if err := g.Barrier(ctx).Wait(); !errors.As(err, &m) {
				return fmt.Errorf("then %v", err)
			}
			return nil
		}))
		if d := time.Since(start); d > time.Second {
			t.Errorf("after %v", d)
		}
	})
}

func TestSplitByColour(t *testing.T) {
	check(t, world(6, ops.Config{}, func(g *ops.Group) error {
		part, err := g.SplitBy(ctx, g.Rank()%3-1, -g.Rank()/3) // −1 0 1 −1 0 1
		if err != nil {
			return err
		}
		if g.Rank()%3 == 0 {
			return errors.Join(places(part, -1), part.Barrier(ctx).Wait(), part.Broadcast(ctx, tensor.Of([]uint8{1}), 0).Wait())
		}
		if err := places(part, 1-g.Rank()/3, g.Rank()%3+3, g.Rank()%3); err != nil { // by key, which falls
			return err
		}
		if total, err := sum(part, g.Rank()); err != nil || total != int64(2*(g.Rank()%3)+3) {
			return fmt.Errorf("sum %d: %w", total, err)
		}
		// Of a group in another order than the world's, Split still sorts by the world.
		again, err := part.Split(ctx, part.Ranks())
		if err != nil {
			return err
		}
		return places(again, g.Rank()/3, g.Rank()%3, g.Rank()%3+3)
	}))
}

func TestSubgroups(t *testing.T) {
	check(t, world(6, ops.Config{}, func(g *ops.Group) error {
		pair, err := g.Blocks(ctx, 2)
		if err != nil {
			return err
		}
		lo := g.Rank() / 2 * 2
		if err := places(pair, g.Rank()%2, lo, lo+1); err != nil {
			return err
		}
		alone, err := pair.Relative().Split(ctx, []int{1}) // the odd one, seen by itself
		if err != nil {
			return err
		}
		if err := places(alone, g.Rank()%2-1, lo+1); err != nil {
			return err
		}
		listed, err := g.Enumerate(ctx, [][]int{{5, 0, 2}, {1, 4}})
		if err != nil {
			return err
		}
		total, err := sum(listed, g.Rank())
		if want := []int64{7, 5, 7, 3, 5, 7}[g.Rank()]; total != want || err != nil {
			return fmt.Errorf("sum %d: %w", total, err)
		}
		return places(listed, []int{0, 0, 1, -1, 1, 2}[g.Rank()], [][]int{{0, 2, 5}, {1, 4}, {0, 2, 5}, nil, {1, 4}, {0, 2, 5}}[g.Rank()]...)
	}))
}

// A forced algorithm that this world does not have does not stand in the way.
func TestGroupsInheritConfig(t *testing.T) {
	check(t, world(5, ops.Config{Algorithm: "all_gather=halving", Lanes: 2, ID: 9}, func(g *ops.Group) error {
		part, err := g.Split(ctx, []int{3, 0, 2, 4})
		if err != nil || part.Rank() < 0 {
			return err
		}
		total, err := sum(part, g.Rank())
		if err != nil || total != 9 {
			return fmt.Errorf("sum %d: %w", total, err)
		}
		if err := g.AllGather(ctx, f32(10), f32(2)).Wait(); err == nil || !strings.Contains(err.Error(), "halving") {
			return fmt.Errorf("all_gather by halving among 5: %v", err)
		}
		return nil
	}))
}

// What goes wrong in a group is told in ranks of the world, and stays there.
func TestTroubleInAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		check(t, world(5, ops.Config{}, func(g *ops.Group) error {
			a, err := g.Split(ctx, []int{1, 3, 4})
			if err != nil {
				return err
			}
			b, err := g.Split(ctx, []int{1, 4})
			if err != nil {
				return err
			}
			c, err := g.Split(ctx, []int{0, 2, 4})
			if err != nil {
				return err
			}
			return errors.Join(disagreeAbout(a, g.Rank()), giveUp(c, g.Rank()), b.Barrier(ctx).Wait(), g.Barrier(ctx).Wait())
		}))
	})
}

// disagreeAbout has rank 3 of ranks 1, 3 and 4 take another for the root.
func disagreeAbout(g *ops.Group, self int) error {
	if g.Rank() < 0 {
		return nil
	}
	root := 4
	if self == 3 {
		root = 1
	}
	err := g.Broadcast(ctx, f32(5), root).Wait()
	if err == nil {
		err = g.Barrier(ctx).Wait()
	}
	var m *ops.MismatchError
	switch {
	case !errors.As(err, &m), (m.Rank == 3) == (self == 3), m.Ours.Root != int32(root) && m.Ours.Kind == ops.KindBroadcast:
		return fmt.Errorf("got %v", err)
	}
	return nil
}

// giveUp has rank 2 of ranks 0, 2 and 4 give up.
func giveUp(g *ops.Group, self int) error {
	if g.Rank() < 0 {
		return nil
	}
	c := ctx
	if self == 2 {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		c = ended
	}
	err := g.Barrier(c).Wait()
	var a *ops.AbortedError
	if self != 2 && (!errors.As(err, &a) || a.Rank != 2) || self == 2 && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("got %v", err)
	}
	return nil
}
