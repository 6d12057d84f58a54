package scenario

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// Random draws up to count faults within a span of time for a world of that many
// nodes. The same arguments give the same plan. All that it does to a world is
// undone by its end: who was killed is started anew, a frozen node thaws, a cut
// heals; at no time is more than one node in trouble that way, and never node 0,
// so that a world which may live with one rank less lives on. Times are whole
// milliseconds.
func Random(seed uint64, nodes, count int, span time.Duration) []Fault {
	if nodes < 2 {
		return nil
	}
	rng := rand.New(rand.NewPCG(seed, uint64(nodes)))
	var plan []Fault
	share := span / time.Duration(max(count/2, 1)) // of each trouble and its end
	for i := 0; i+1 < count; i += 2 {
		from := share * time.Duration(i/2)
		begin := from + time.Duration(rng.Int64N(int64(share/2)+1))
		end := begin + time.Duration(rng.Int64N(int64(from+share-begin)+1))
		node := 1 + rng.IntN(nodes-1)
		other := rng.IntN(nodes - 1)
		if other >= node {
			other++
		}
		trouble := []struct {
			kind, undo Kind
			nodes      []int
		}{
			{Kill, Restart, []int{node}}, {Freeze, Thaw, []int{node}}, {Cut, Heal, []int{node, other}},
		}[rng.IntN(3)]
		plan = append(plan,
			Fault{At: begin.Truncate(time.Millisecond), Kind: trouble.kind, Nodes: trouble.nodes},
			Fault{At: end.Truncate(time.Millisecond), Kind: trouble.undo, Nodes: trouble.nodes})
	}
	slices.SortStableFunc(plan, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return plan
}

// Shrink looks for the shortest part of a plan that still fails, by leaving out
// more and more of it: Zeller's ddmin. fails is asked about plans in the order of
// the whole, and must answer the same when asked the same. The result cannot be
// made shorter by leaving out any one fault; if the whole does not fail it is the
// whole.
func Shrink(plan []Fault, fails func([]Fault) bool) []Fault {
	if !fails(plan) {
		return plan
	}
	for size := (len(plan) + 1) / 2; size > 0 && len(plan) > 0; {
		smaller := false
		for from := 0; from < len(plan); {
			less := slices.Concat(plan[:from], plan[min(from+size, len(plan)):])
			if fails(less) {
				plan, smaller = less, true
			} else {
				from += size
			}
		}
		switch {
		case size > 1:
			size = (size + 1) / 2
		case !smaller:
			size = 0
		}
	}
	return plan
}
