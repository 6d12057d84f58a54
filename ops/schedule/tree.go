package schedule

import (
	"fmt"
	"slices"
)

// Tree is the reduction to rank 0 of Sanders, Speck and Träff ("Two-tree
// algorithms for full bandwidth broadcast, reduction and scan", 2009), the one
// that NCCL's trees come from; reversed it is the broadcast from rank 0, and
// AllReduce(Tree(n, k)) the all-reduce. For another root see Rotate.
//
// In a binary tree half of the ranks, the leaves, send once and receive
// nothing. So there are two trees, of half the chunks each, over all ranks but
// the root, and whoever is a leaf in one is inside the other; the root receives
// from the tops of both. The chunks follow one another up in a pipeline in
// which no rank ever sends, or receives, two in one round.
//
// k chunks, at most k+2⌈lg n⌉−2 rounds (k more than 1, n more than 2); each other
// rank sends its bytes once, and receives at most as many, or a chunk more when
// k is odd. It is for vectors
// that are large for a binomial tree and ranks too many for a ring. More chunks
// fill the pipeline better but pay more latencies: a good k is near the square
// root of 2 lg n · bytes / (latency · rate).
func Tree(n, k int) Schedule {
	positive("tree", n)
	if k < 1 || k > MaxCells {
		panic(fmt.Sprintf("schedule: tree of %d chunks", k))
	}
	s := Schedule{Name: "tree", Ranks: n, Chunks: k}
	t := newTwoTrees(n)
	for c := range k {
		tree := c % 2
		for v := 1; v < n; v++ {
			at := t.start(tree, v) + c - tree
			s.add(at, Move{From: t.parent[tree][v], To: v, Src: c, Dst: c, N: 1})
		}
	}
	s = s.Reverse()
	for _, round := range s.Rounds {
		for i := range round {
			round[i].Reduce = true
		}
	}
	s.Name = "tree"
	return s.tidy()
}

// twoTrees are the trees of a broadcast from rank 0 over ranks 1…n−1. An edge
// is known by its tree and its lower end.
type twoTrees struct {
	parent  [2][]int // 0 for the top
	sibling [2][]int // the parent's other child; 0 for none
	top     [2]int
	parity  [2][]int // of the rounds in which the edge is used; −1: unknown yet
	first   [2][]int // round in which it is used first; −1: unknown yet
}

func newTwoTrees(n int) *twoTrees {
	t := &twoTrees{}
	for tree := range 2 {
		t.parent[tree], t.sibling[tree] = make([]int, n), make([]int, n)
		t.parity[tree], t.first[tree] = slices.Repeat([]int{-1}, n), slices.Repeat([]int{-1}, n)
		child := make([]int, n) // of each rank, the one seen last
		for place := 1; place < n; place++ {
			v, p := occupant(tree, place, n-1), occupant(tree, above(place, n-1), n-1)
			t.parent[tree][v] = p
			if p == 0 {
				t.top[tree] = v
			} else if o := child[p]; o != 0 {
				t.sibling[tree][v], t.sibling[tree][o] = o, v
			}
			child[p] = v
		}
	}
	if n > 1 {
		t.paint(0, t.top[0], 0)
	}
	for v := 1; v < n; v++ {
		t.paint(0, v, 0)
		t.paint(1, v, 0)
	}
	return t
}

// above is the place of the parent in a tree of places 1…n in order, in which
// the odd places are leaves: 4 above 2 and 6, 2 above 1 and 3. It is 0 for the
// top.
func above(place, n int) int {
	bit := place & -place
	up := place ^ bit
	if inner := up | 2*bit; inner <= n {
		return inner
	}
	return up
}

// occupant is the rank in a place of either tree. In the second it is the other
// way round, or when that would have the same leaves, one further on.
func occupant(tree, place, n int) int {
	switch {
	case tree == 0 || place == 0:
		return place
	case n%2 == 0:
		return n + 1 - place
	default:
		return place%n + 1
	}
}

// paint gives an edge the rounds of one parity. The edges that must have the
// other are those from the same sender and to the same receiver: one of each at
// most, so that they form paths and even circles, and two parities are enough.
func (t *twoTrees) paint(tree, v, parity int) {
	if v == 0 || t.parity[tree][v] >= 0 {
		return
	}
	t.parity[tree][v] = parity
	t.paint(1-tree, v, 1-parity)
	if t.parent[tree][v] == 0 {
		t.paint(1-tree, t.top[1-tree], 1-parity)
	} else {
		t.paint(tree, t.sibling[tree][v], 1-parity)
	}
}

// start is the first round of an edge's parity after its chunk has arrived
// above. The next chunks follow every other round.
func (t *twoTrees) start(tree, v int) int {
	if t.first[tree][v] < 0 {
		ready := 0
		if p := t.parent[tree][v]; p != 0 {
			ready = t.start(tree, p) + 1
		}
		t.first[tree][v] = ready + (ready+t.parity[tree][v])%2
	}
	return t.first[tree][v]
}
