package schedule

import "strconv"

// Fold adds up parts, at least one, in the canonical order: the first half,
// the second half, then the two, and each half likewise; of an odd number the
// first half is the longer. CanonicalOrder prints it.
//
// It is pairwise or cascade summation (Higham, "The accuracy of floating point
// summation", 1993): no part is in more than ⌈lg n⌉ additions, so the error
// grows with lg n rather than with n, and a schedule may finish in ⌈lg n⌉
// rounds. With parts indexed by rank it is the order that Contract.Canonical
// demands, and in which a round adds up what several ranks send to one chunk.
// A reference for what a deterministic sum must be, bit for bit, is
// Fold(values, add).
func Fold[T any](parts []T, add func(a, b T) T) T {
	if len(parts) == 1 {
		return parts[0]
	}
	half := cut(len(parts))
	return add(Fold(parts[:half], add), Fold(parts[half:], add))
}

// CanonicalOrder prints the canonical order of n ranks: "((0+1)+2)+(3+4)" for
// five.
func CanonicalOrder(n int) string {
	positive("canonical order", n)
	ranks := make([]string, n)
	for r := range ranks {
		ranks[r] = strconv.Itoa(r)
	}
	sum := Fold(ranks, func(a, b string) string { return "(" + a + "+" + b + ")" })
	if n > 1 {
		sum = sum[1 : len(sum)-1]
	}
	return sum
}

// cut is how many of n > 1 parts are the first half.
func cut(n int) int { return n - n/2 }

// A node is a sum in the canonical tree: ranks lo…mid−1 and mid…hi−1, which
// meet in the given round if the leaves' own sums begin in round 0.
type node struct {
	lo, mid, hi int
	round       int
}

func nodeOf(lo, hi int) node {
	return node{lo, lo + cut(hi-lo), hi, log(hi-lo) - 1}
}

// opposite is the rank of the other half that r pairs up with: as far into it
// as r is into its own. When the first half is the longer its last rank is left
// over, and pairs up with spare as well.
func (v node) opposite(r, spare int) int {
	switch {
	case r >= v.mid:
		return r - v.mid + v.lo
	case r-v.lo == v.hi-v.mid:
		return spare
	}
	return r - v.lo + v.mid
}

// nodes calls f for every node of the canonical tree over ranks lo…hi−1.
func nodes(lo, hi int, f func(v node)) {
	if hi-lo < 2 {
		return
	}
	v := nodeOf(lo, hi)
	nodes(v.lo, v.mid, f)
	nodes(v.mid, v.hi, f)
	f(v)
}

// toward calls f for every node over ranks lo…hi−1 with the move by which the
// sum of all ends on root: at each node the half without the root hands its sum
// to the root's partner there, who hands it over.
func toward(lo, hi, root int, f func(v node, from, to int)) {
	if hi-lo < 2 {
		return
	}
	v := nodeOf(lo, hi)
	peer := v.opposite(root, v.hi-1)
	toward(v.lo, v.mid, min(root, peer), f)
	toward(v.mid, v.hi, max(root, peer), f)
	f(v, peer, root)
}
