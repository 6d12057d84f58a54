package ops

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/bits"
	"slices"

	"peermesh/ops/tensor"
)

// How groups are made of groups.
//
// To make groups is a collective of the parent: every rank issues it, at the same
// place in its order of collectives, with the same plan of who goes where. The
// call's digest has the plan, so ranks that differ in it are found out as in any
// other disagreement. What travels is an all-gather of three words a rank: where
// it goes, its place there, and which IDs it has free.
//
// A group that is made goes its own way: its operations have an order, lanes and
// failures of their own. It inherits the parent's Config. It cannot be closed: a
// transport keeps lanes for as long as it lives, at most 1,024 between two ranks,
// and a group takes at least one of them with each peer that it talks to. So
// groups are made once and kept, not made anew for every step.

// noColor is where a rank goes that is in none of the new groups.
const noColor = -1

// Split makes a group of some ranks of g: torch.distributed's new_group. Every
// rank of g calls it, members or not, with the same members in any order; in the
// new group they are in the order of their ranks in the world.
//
// A process that is not among them gets a Group whose Rank is −1. Its collectives
// are no-ops: Works that are done and have no error, whatever the sizes and roots
// they were given. Its messages are errors, ErrNotMember. Groups made of it have
// rank −1 too, and no members.
//
// A rank that is twice among them, or is not in g, is an error of the arguments:
// nothing has moved. Ranks that differ in the members get a *MismatchError.
func (g *Group) Split(ctx context.Context, members []int) (*Group, error) {
	switch {
	case g.Rank() < 0:
		return g.child(0, nil), nil
	case len(members) == 0:
		return nil, argument(KindSplit, "members is empty")
	}
	lists, color, err := g.lists([][]int{members})
	if err != nil {
		return nil, err
	}
	made, err := g.divide(ctx, planDigest("members", lists), color, g.Global(g.Rank()))
	if err == nil && color == noColor {
		made = g.child(0, lists[0])
	}
	return made, err
}

// SplitBy makes a group of the ranks that give the same color, in the order of
// their keys, and of their ranks in g where keys are equal: MPI_Comm_split. A rank
// whose color is negative is in none; its Group has rank −1 and no members, and is
// as Split describes.
func (g *Group) SplitBy(ctx context.Context, color, key int) (*Group, error) {
	return g.divide(ctx, planDigest("color", nil), max(color, noColor), key)
}

// Blocks cuts g into groups of a size, which divides g's, of successive ranks:
// torch.distributed's new_subgroups. It returns the one that this rank is in.
func (g *Group) Blocks(ctx context.Context, size int) (*Group, error) {
	if size < 1 || g.Size()%size != 0 {
		return nil, argument(KindSplit, "size %d does not divide a group of %d", size, g.Size())
	}
	return g.divide(ctx, planDigest("blocks", [][]int{{size}}), g.Rank()/size, g.Rank())
}

// Enumerate makes a group of each list, none of which shares a rank with another:
// torch.distributed's new_subgroups_by_enumeration. It returns the one that this
// rank is in; a rank that is in no list gets a Group of rank −1 and no members.
// Every rank of g gives the same lists, in the same order; in a group, ranks are
// in the order of their ranks in the world.
func (g *Group) Enumerate(ctx context.Context, lists [][]int) (*Group, error) {
	if g.Rank() < 0 {
		return g.child(0, nil), nil
	}
	lists, color, err := g.lists(lists)
	if err != nil {
		return nil, err
	}
	return g.divide(ctx, planDigest("lists", lists), color, g.Global(g.Rank()))
}

// lists checks lists of members and returns them sorted, as ranks in the world,
// with the place of the one that this rank is in.
func (g *Group) lists(given [][]int) (lists [][]int, color int, err error) {
	color = noColor
	seen := make(map[int]bool)
	for at, list := range given {
		sorted := make([]int, len(list))
		for k, rank := range list {
			i, ok := g.member(rank)
			switch {
			case !ok:
				return nil, 0, g.stranger(KindSplit, "rank", rank)
			case seen[i]:
				return nil, 0, argument(KindSplit, "rank %d is given twice", rank)
			case i == g.Rank():
				color = at
			}
			seen[i], sorted[k] = true, g.ranks.world(i)
		}
		slices.Sort(sorted)
		lists = append(lists, sorted)
	}
	return lists, color, nil
}

// planDigest is what ranks compare that give the same plan.
func planDigest(form string, lists [][]int) uint32 {
	h := fnv.New32a()
	h.Write([]byte(form))
	for _, list := range lists {
		b := binary.LittleEndian.AppendUint32(nil, uint32(len(list)))
		for _, n := range list {
			b = binary.LittleEndian.AppendUint32(b, uint32(n))
		}
		h.Write(b)
	}
	return h.Sum32()
}

// words is how many words each rank gives: its color, its key, its free IDs.
const words = 3

// divide makes this rank's group: those of its color, by key.
func (g *Group) divide(ctx context.Context, digest uint32, color, key int) (*Group, error) {
	if g.Rank() < 0 {
		return g.child(0, nil), nil
	}
	if g.plans.err != nil {
		return nil, g.plans.err
	}
	var plain plans // no algorithm and no lanes that a caller has asked for
	plain.init(g.Size(), g.Rank(), Config{Links: g.Links(), Lanes: 1})
	table := make([]int64, words*g.Size())
	p, err := plain.choose(KindAllGather, noRoot, 8*int64(len(table)))
	if err != nil {
		return nil, err
	}
	t := g.task(KindSplit, p, tensor.Of(table), tensor.Op{}, noRoot)
	t.run.call.Digest ^= digest
	salt := -1
	t.body = func(do func() error) error {
		offered := g.root.ids.offer(g.id, t.run.call.Seq)
		copy(table[words*g.Rank():], []int64{int64(color), int64(key), int64(offered)})
		err := do()
		keep := -1
		if err == nil {
			if salt = commonSalt(table); color != noColor {
				keep = salt
			}
		}
		g.root.ids.settle(g.id, t.run.call.Seq, offered, keep)
		return err
	}
	switch err := g.issue(ctx, t).Wait(); {
	case err != nil:
		return nil, err
	case color == noColor:
		return g.child(0, nil), nil
	case salt < 0:
		return nil, fmt.Errorf("ops: %v: of %d IDs none is free on every rank", t.run.call, salts)
	}
	return g.child(saltedID(g.id, t.run.call.Seq, salt), g.colored(table, color)), nil
}

// commonSalt is the lowest ID that all ranks have offered; −1 if there is none.
func commonSalt(table []int64) int {
	common := ^uint64(0)
	for i := words - 1; i < len(table); i += words {
		common &= uint64(table[i])
	}
	if common == 0 {
		return -1
	}
	return bits.TrailingZeros64(common)
}

// colored are the ranks in the world of the members of a color, in their order.
func (g *Group) colored(table []int64, color int) []int {
	var members []int
	for i := range g.Size() {
		if table[words*i] == int64(color) {
			members = append(members, i)
		}
	}
	slices.SortStableFunc(members, func(i, j int) int { return cmp.Compare(table[words*i+1], table[words*j+1]) })
	for k, i := range members {
		members[k] = g.ranks.world(i)
	}
	return members
}

// child is a group of some ranks of the world, in this order.
func (g *Group) child(id uint32, list []int) *Group {
	t := among(g.root.t, list)
	c := g.c
	var err error
	if c.Links, err = g.root.among(t.ranks); err != nil { // now, which is at one place in the order on all ranks
		c.Links = DefaultLinks // the world has ended: there is nothing left to choose
	}
	made := newGroup(g.root, t, t.ranks, id, c)
	made.relative = g.relative
	return made
}
