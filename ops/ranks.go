package ops

import (
	"fmt"
	"slices"
)

// ranks are the members of a group, in the order of their ranks in it, by their
// ranks in the world. Where the group is the world the two are the same and list
// is nil, so that translating costs a comparison.
type ranks struct {
	n    int
	list []int
}

// world is the rank in the world of member i.
func (r ranks) world(i int) int {
	if r.list == nil {
		return i
	}
	return r.list[i]
}

// local is the rank in the group of a rank of the world.
func (r ranks) local(world int) (i int, member bool) {
	if r.list == nil {
		return world, 0 <= world && world < r.n
	}
	i = slices.Index(r.list, world)
	return i, i >= 0
}

// String says who they are, as an error does.
func (r ranks) String() string {
	if r.list == nil {
		return fmt.Sprintf("a group of %d", r.n)
	}
	return fmt.Sprintf("the group of ranks %v", r.list)
}

// Rank is this process's rank in the group, in [0, Size), or −1 when it is not a
// member.
func (g *Group) Rank() int { return g.t.Rank() }

// Size is the number of ranks in the group; a process that is not a member knows
// it too.
func (g *Group) Size() int { return g.ranks.n }

// Ranks are the members' ranks in the world, in the order of their ranks in the
// group.
func (g *Group) Ranks() []int {
	all := make([]int, g.ranks.n)
	for i := range all {
		all[i] = g.ranks.world(i)
	}
	return all
}

// Global is the rank in the world of the group's rank i, which must be in
// [0, Size).
func (g *Group) Global(i int) int { return g.ranks.world(i) }

// Local is the rank in the group of a rank of the world, and whether that is a
// member.
func (g *Group) Local(world int) (int, bool) {
	i, ok := g.ranks.local(world)
	if !ok {
		return -1, false
	}
	return i, true
}

// Relative is the same group, seen by its own ranks: roots, peers and members
// are given to its methods, and sources returned, as ranks in the group. Without
// it they are ranks in the world, as in torch.distributed. Operations of the two
// views have one order. Groups made from a relative view are relative to
// themselves. Errors name ranks in the world in either view, and Ranks, Global
// and Local are the same.
func (g *Group) Relative() *Group { return &Group{core: g.core, relative: true} }

// member is the rank in the group of a rank that a caller gave.
func (g *Group) member(rank int) (i int, ok bool) {
	if g.relative {
		return rank, 0 <= rank && rank < g.ranks.n
	}
	return g.ranks.local(rank)
}

// name is the rank that a caller is given for the group's rank i.
func (g *Group) name(i int) int {
	if g.relative {
		return i
	}
	return g.ranks.world(i)
}

// stranger is the error of a rank argument that is not a member.
func (g *Group) stranger(k Kind, what string, rank int) error {
	if g.relative {
		return argument(k, "%s %d is not a rank of a group of %d", what, rank, g.ranks.n)
	}
	return argument(k, "%s %d is not in %v", what, rank, g.ranks)
}
