package schedule

import "testing"

// A pipeline of k chunks through trees of depth ⌈lg n⌉ at most, every other
// round each: the root's two ports and all others' are never idle for long.
func TestTreeFigures(t *testing.T) {
	for n := 1; n <= most; n++ {
		for k := 1; k <= 10; k++ {
			s := Tree(n, k)
			bound := k + 2*ceilLog(n) - 2
			switch {
			case n == 1:
				bound = 0
			case k == 1 || n == 2:
				bound = k + 2*ceilLog(n) - 1
			}
			if len(s.Rounds) > bound || n > 1 && len(s.Rounds) < k || s.Chunks != k {
				t.Errorf("%d chunks up trees of %d: %d rounds of %d chunks", k, n, len(s.Rounds), s.Chunks)
			}
			in, out := received(s), sent(s)
			for r := range n {
				sends, limit := k, k+k%2
				if r == 0 {
					sends, limit = 0, k
				}
				if out[r] != sends || in[r] > limit {
					t.Errorf("%d chunks up trees of %d: rank %d sends %d, receives %d", k, n, r, out[r], in[r])
				}
			}
			if n > 1 && in[0] != k {
				t.Errorf("%d chunks up trees of %d: the root receives %d", k, n, in[0])
			}
		}
	}
}

// The rounds beyond one a chunk, which are the latency of the pipeline.
func TestTreeLatency(t *testing.T) {
	for n, want := range map[int]int{2: 0, 3: 2, 4: 2, 5: 3, 8: 4, 9: 5, 16: 6, 17: 7, 32: 8, 33: 9, 64: 10} {
		for _, k := range []int{8, 64} {
			if got := len(Tree(n, k).Rounds) - k; got != want {
				t.Errorf("%d chunks up trees of %d: %d rounds more, want %d", k, n, got, want)
			}
		}
	}
}

// Of either tree the leaves are inside the other, which is the whole idea.
func TestTreesShareTheWork(t *testing.T) {
	for n := 2; n <= 3*most; n++ {
		trees := newTwoTrees(n)
		var children [2][]int
		for tree := range 2 {
			children[tree] = make([]int, n)
			for v := 1; v < n; v++ {
				children[tree][trees.parent[tree][v]]++
			}
			if children[tree][0] != 1 {
				t.Errorf("of %d: tree %d has %d tops", n, tree, children[tree][0])
			}
		}
		for v := 1; v < n; v++ {
			a, b := children[0][v], children[1][v]
			if a > 2 || b > 2 || a > 0 && b > 0 {
				t.Errorf("of %d: rank %d has %d children and %d", n, v, a, b)
			}
		}
	}
}

// Price of a large broadcast: the pipeline beats whoever waits for the whole.
func TestTreesAreForLargeVectors(t *testing.T) {
	links := Uniform{Delay: 1e6, BytesPerSecond: 1e9}
	const n, large, small = 32, 64 << 20, 1 << 10
	tree, binomial := Tree(n, 64).Reverse(), Binomial(n).Reverse()
	if tree, binomial := Price(tree, large, links), Price(binomial, large, links); 2*tree > binomial {
		t.Errorf("%d bytes: tree %v, binomial %v", large, tree, binomial)
	}
	if tree, binomial := Price(tree, small, links), Price(binomial, small, links); tree < binomial {
		t.Errorf("%d bytes: tree %v, binomial %v", small, tree, binomial)
	}
}
