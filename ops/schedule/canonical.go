package schedule

import "strconv"

// Fold adds up parts, at least one, in the canonical order: those in even places,
// those in odd places, then the two, and each of them likewise by its own places.
// CanonicalOrder prints it.
//
// Of a power of two it folds the upper half onto the lower one, and again, which is
// what Halving does, and what makes sums of sums come out even: where rank r of n
// has added up, in this order, parts r, r+n, r+2n and so on, the sum over the ranks
// is that of all the parts.
//
// It is pairwise or cascade summation (Higham, "The accuracy of floating point
// summation", 1993): no part is in more than ⌈lg n⌉ additions, so the error
// grows with lg n rather than with n, and a schedule may finish in ⌈lg n⌉
// rounds. With parts indexed by rank it is the order that Contract.Canonical
// demands, and in which a round adds up what several ranks send to one chunk.
// A reference for what a deterministic sum must be, bit for bit, is
// Fold(values, add).
func Fold[T any](parts []T, add func(a, b T) T) T {
	inOrder := make([]T, len(parts))
	for place, r := range leaves(len(parts)) {
		inOrder[place] = parts[r]
	}
	return foldHalves(inOrder, add)
}

func foldHalves[T any](parts []T, add func(a, b T) T) T {
	if len(parts) == 1 {
		return parts[0]
	}
	half := cut(len(parts))
	return add(foldHalves(parts[:half], add), foldHalves(parts[half:], add))
}

// CanonicalOrder prints the canonical order of n ranks: "((0+4)+2)+(1+3)" for
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

// leaves are the parts in the order in which they stand in the canonical tree, in
// which every sum is then one of two neighbouring halves.
func leaves(n int) []int {
	if n < 2 {
		return make([]int, n)
	}
	even, odd := leaves(cut(n)), leaves(n-cut(n))
	all := make([]int, 0, n)
	for _, r := range even {
		all = append(all, 2*r)
	}
	for _, r := range odd {
		all = append(all, 2*r+1)
	}
	return all
}

// cut is how many of n > 1 parts are the first half.
func cut(n int) int { return n - n/2 }

// A node is a sum in the canonical tree: the leaves in places lo…mid−1 and
// mid…hi−1, which meet in the given round if the leaves' own sums begin in round 0.
type node struct {
	lo, mid, hi int
	round       int
}

func nodeOf(lo, hi int) node {
	return node{lo, lo + cut(hi-lo), hi, log(hi-lo) - 1}
}

// opposite is the place in the other half that r pairs up with: as far into it
// as r is into its own. When the first half is the longer its last place is left
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

// nodes calls f for every node of the canonical tree over places lo…hi−1.
func nodes(lo, hi int, f func(v node)) {
	if hi-lo < 2 {
		return
	}
	v := nodeOf(lo, hi)
	nodes(v.lo, v.mid, f)
	nodes(v.mid, v.hi, f)
	f(v)
}

// toward calls f for every node over places lo…hi−1 with the move by which the
// sum of all ends in place root: at each node the half without the root hands its sum
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
