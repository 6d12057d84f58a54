package ops_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet"
)

// A crowd is groups of one world, some made of others, and what each is to do: a
// plan that every rank draws from the same seed.
type crowd struct {
	parents []int   // by group: the group it is made of; group 0 is the world
	members [][]int // in the world, as they are given to Split
	scripts [][]act
}

// An act issues one operation of a group and returns what checks its result.
type act func(g *ops.Group) (works []*ops.Work, result func() error)

// newCrowd plans groups of 2 to 6 of n ranks, with acts for each.
func newCrowd(seed uint64, n, groups, acts int) *crowd {
	rng := rand.New(rand.NewPCG(seed, 1))
	world := rng.Perm(n)
	c := &crowd{parents: []int{-1}, members: [][]int{world}}
	for len(c.members) <= groups {
		parent := 0
		if of := rng.IntN(len(c.members)); len(c.members[of]) > 2 {
			parent = of
		}
		list := slices.Clone(c.members[parent])
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		c.parents = append(c.parents, parent)
		c.members = append(c.members, list[:2+rng.IntN(min(len(list), 6)-1)])
	}
	for at, list := range c.members {
		script := make([]act, acts)
		for i := range script {
			script[i] = newAct(rng, list, uint64(at)<<32|uint64(i))
		}
		c.scripts = append(c.scripts, script)
	}
	return c
}

// play makes the groups and issues their scripts, each in its order, but mixed as
// this rank likes; then it waits for all and checks all.
func (c *crowd) play(world *ops.Group) error {
	groups := []*ops.Group{world}
	for at := 1; at < len(c.members); at++ {
		parent := groups[c.parents[at]]
		if parent.Rank() < 0 {
			groups = append(groups, parent)
			continue
		}
		g, err := parent.Split(ctx, c.members[at])
		if err != nil {
			return fmt.Errorf("group %d: %w", at, err)
		}
		if _, member := g.Local(world.Rank()); member != (g.Rank() >= 0) || g.Size() != len(c.members[at]) {
			return fmt.Errorf("group %d: rank %d of %d", at, g.Rank(), g.Size())
		}
		groups = append(groups, g)
	}
	var order []int // of groups, one for each act
	for at, g := range groups {
		if g.Rank() >= 0 {
			order = append(order, slices.Repeat([]int{at}, len(c.scripts[at]))...)
		}
	}
	rand.New(rand.NewPCG(uint64(world.Rank()), 2)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	var errs []error
	var results []func() error
	next := make([]int, len(groups))
	for _, at := range order {
		works, result := c.scripts[at][next[at]](groups[at])
		results = append(results, func() error {
			for _, w := range works {
				if err := w.Wait(); err != nil {
					return fmt.Errorf("group %d: %w", at, err)
				}
			}
			return result()
		})
		next[at]++
	}
	for _, result := range results {
		errs = append(errs, result())
	}
	return errors.Join(errs...)
}

// gift is what a rank of the world gives to an act.
func gift(rank int, act uint64, n int) []int64 {
	x := make([]int64, n)
	for i := range x {
		x[i] = int64((act*31+uint64(rank))*1_000_003 + uint64(i))
	}
	return x
}

func gifts(ranks []int, act uint64, n int) (all []int64) {
	for _, r := range ranks {
		all = append(all, gift(r, act, n)...)
	}
	return all
}

func agree(what string, got, want []int64) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s: got %v, want %v", what, got, want)
	}
	return nil
}

// newAct draws an operation of a group of these ranks of the world.
func newAct(rng *rand.Rand, list []int, id uint64) act {
	n := rng.IntN(100)
	if rng.IntN(100) == 0 {
		n = 20_000 // beyond what is sent in one piece
	}
	members := slices.Sorted(slices.Values(list))
	from, to := list[rng.IntN(len(list)-1)], list[len(list)-1]
	switch rng.IntN(6) {
	case 0:
		return func(g *ops.Group) ([]*ops.Work, func() error) {
			me, _ := g.Local(g.Global(g.Rank()))
			x, want := gift(members[me], id, n), make([]int64, n)
			for _, r := range members {
				for i, v := range gift(r, id, n) {
					want[i] += v
				}
			}
			return []*ops.Work{g.AllReduce(ctx, tensor.Of(x), tensor.Sum)}, func() error { return agree("all_reduce", x, want) }
		}
	case 1:
		return func(g *ops.Group) ([]*ops.Work, func() error) {
			x := gift(g.Global(g.Rank()), id, n)
			return []*ops.Work{g.Broadcast(ctx, tensor.Of(x), from)}, func() error { return agree("broadcast", x, gift(from, id, n)) }
		}
	case 2:
		return func(g *ops.Group) ([]*ops.Work, func() error) {
			x, out := gift(g.Global(g.Rank()), id, n), make([]int64, n*len(members))
			return []*ops.Work{g.AllGather(ctx, tensor.Of(out), tensor.Of(x))}, func() error { return agree("all_gather", out, gifts(members, id, n)) }
		}
	case 3:
		return func(g *ops.Group) ([]*ops.Work, func() error) {
			return []*ops.Work{g.Barrier(ctx)}, func() error { return nil }
		}
	case 4:
		return message(from, to, uint32(rng.IntN(3)), id, n)
	}
	return collect(members, to, uint32(10+rng.IntN(2)), id)
}

// message goes from one rank to another.
func message(from, to int, tag uint32, id uint64, n int) act {
	return func(g *ops.Group) ([]*ops.Work, func() error) {
		x := gift(g.Global(g.Rank()), id, n)
		switch g.Global(g.Rank()) {
		case from:
			return []*ops.Work{g.Isend(ctx, tensor.Of(x), to, tag)}, func() error { return nil }
		case to:
			return []*ops.Work{g.Irecv(ctx, tensor.Of(x), from, tag)}, func() error { return agree("recv", x, gift(from, id, n)) }
		}
		return nil, func() error { return nil }
	}
}

// collect has every other rank send to one, which takes them as they come. As each
// rank's messages keep their order, the receives of a collect get those of the
// sends of an earlier one only if ranks' orders differ: so what counts is who sent
// what, not which receive got it.
func collect(members []int, to int, tag uint32, id uint64) act {
	return func(g *ops.Group) ([]*ops.Work, func() error) {
		if me := g.Global(g.Rank()); me != to {
			return []*ops.Work{g.Isend(ctx, tensor.Of([]int64{int64(me), int64(id >> 32)}), to, tag)}, func() error { return nil }
		}
		var works []*ops.Work
		var got [][]int64
		for range len(members) - 1 {
			x := []int64{-1, -1}
			got = append(got, x)
			works = append(works, g.IrecvAny(ctx, tensor.Of(x), tag))
		}
		return works, func() error {
			for i, x := range got {
				if from := works[i].Source(); x[0] != int64(from) || x[1] != int64(id>>32) {
					return fmt.Errorf("recv from any: %v from rank %d", x, from)
				}
			}
			return nil
		}
	}
}

// Overlapping and nested groups, hundreds of operations each, all at work at once:
// nobody waits for ever, and nobody gets what was another's.
func TestCrowd(t *testing.T) {
	seeds := uint64(3)
	if raceDetector {
		seeds = 1
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(seed, 8, 10, 200)
			check(t, world(8, ops.Config{}, c.play))
		})
	}
}

func TestCrowdOfNodes(t *testing.T) {
	c := newCrowd(9, 6, 6, 60)
	if err := testnet.New(t, testnet.Config{Nodes: 6}).Run(c.play); err != nil {
		t.Error(err)
	}
}
