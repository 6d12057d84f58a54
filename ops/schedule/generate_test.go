package schedule

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"
)

// ceilLog is ⌈lg n⌉, floorLog ⌊lg n⌋.
func ceilLog(n int) int {
	log := 0
	for p := 1; p < n; p *= 2 {
		log++
	}
	return log
}

func floorLog(n int) int { return ceilLog(n+1) - 1 }

// sent is the chunks that each rank sends over the whole of s, and received
// those that it gets.
func sent(s Schedule) []int {
	out := make([]int, s.Ranks)
	for _, round := range s.Rounds {
		for _, m := range round {
			out[m.From] += m.N
		}
	}
	return out
}

func received(s Schedule) []int { return sent(s.Reverse()) }

func together(counts []int) (sum int) {
	for _, c := range counts {
		sum += c
	}
	return sum
}

// The figures of the guide's tables, counted: rounds, chunks that the busiest
// rank sends, chunks that all send together, chunks that a vector is cut into.
// Where the two sums are most × n, all ranks send the same.
func TestClosedForms(t *testing.T) {
	for n := 1; n <= most; n++ {
		p, up, all := 1<<floorLog(n), ceilLog(n), n*(n-1)
		odd := min(n-p, 1) // when n is no power of two
		some := min(n-1, 1)
		half := 0 // Σ of the gather's subtrees
		hops := 0 // of all chunks of a rank in BruckAllToAll
		for r := 1; r < n; r++ {
			half += min(r&-r, n-r)
			hops += bits.OnesCount(uint(min(r, n-r)))
		}
		folded := n - p // ranks that step aside in Halving
		for _, c := range []struct {
			s                           Schedule
			rounds, most, total, chunks int
		}{
			{Ring(n), n - 1, n - 1, all, n},
			{Bruck(n), up, n - 1, all, n},
			{Cascade(n), up, n - 1, all, n},
			{Direct(n), some, n - 1, all, n},
			{Halving(n), floorLog(n) + odd, max(p-1, odd*p), p*(p-1) + folded*p, p},
			{Ring(n).Reverse(), n - 1, n - 1, all, n},
			{Bruck(n).Reverse(), up, n - 1, all, n},
			{Direct(n).Reverse(), some, n - 1, all, n},
			{OneShot(n), some, n - 1, all, 1},
			{AllReduce(Ring(n)), 2 * (n - 1), 2 * (n - 1), 2 * all, n},
			{AllReduce(Bruck(n)), 2 * up, 2 * (n - 1), 2 * all, n},
			{AllReduce(Direct(n)), 2 * some, 2 * (n - 1), 2 * all, n},
			{AllReduce(Halving(n)), 2 * (floorLog(n) + odd), 2*(p-1) + odd*p, 2 * (p*(p-1) + folded*p), p},
			{AllReduce(Binomial(n)), 2 * up, up, 2 * (n - 1), 1},
			{Binomial(n), up, some, n - 1, 1},
			{Binomial(n).Reverse(), up, up, n - 1, 1},
			{BinomialGather(n), up, gathered(n), half, n},
			{BinomialGather(n).Reverse(), up, n - 1, half, n},
			{DirectGather(n), some, some, n - 1, n},
			{DirectGather(n).Reverse(), some, n - 1, n - 1, n},
			{Broadcast(Bruck(n), 0), 2 * up, 2 * (n - 1), half + all, n},
			{Broadcast(Ring(n), 0), up + n - 1, 2 * (n - 1), half + all, n},
			{Reduce(Bruck(n), 0), 2 * up, n - 1 + gathered(n), half + all, n},
			{Reduce(Ring(n), 0), up + n - 1, n - 1 + gathered(n), half + all, n},
			{Reduce(Cascade(n), 0), 2 * up, n - 1 + gathered(n), half + all, n},
			{Pairwise(n), n / 2, n - 1, all, n},
			{DirectAllToAll(n), some, n - 1, all, n},
			{BruckAllToAll(n), bits.Len(uint(n / 2)), hops, n * hops, n},
			{Dissemination(n), up, up, n * up, 1},
		} {
			counts := sent(c.s)
			got := [...]int{len(c.s.Rounds), slices.Max(counts), together(counts), c.s.Chunks, c.s.Ranks}
			if want := [...]int{c.rounds, c.most, c.total, c.chunks, n}; got != want {
				t.Errorf("%s of %d: rounds, most, total, chunks, ranks %v, want %v", c.s.Name, n, got, want)
			}
		}
	}
}

// gathered is the largest subtree that is not the root's: the largest power of
// two below n, or what is beyond it.
func gathered(n int) (most int) {
	for d := 1; d < n; d *= 2 {
		most = max(most, min(d, n-d))
	}
	return most
}

// Doubling, Cascade and AllReduce(Cascade) have closed forms for powers of two
// only. For the rest, bounds that the guide gives.
func TestBoundsOffPowersOfTwo(t *testing.T) {
	for n := 2; n <= 2*most; n++ {
		up, odd := ceilLog(n), n&(n-1) != 0
		if s := Doubling(n); len(s.Rounds) != up || together(sent(s)) != together(received(s)) {
			t.Errorf("doubling of %d: %d rounds", n, len(s.Rounds))
		}
		extra := 0
		if odd {
			extra = 1
		}
		if most := slices.Max(sent(Doubling(n))); most < up || most > up+extra {
			t.Errorf("doubling of %d sends %d times the vector", n, most)
		}
		if most := slices.Max(received(Doubling(n))); most != up {
			t.Errorf("doubling of %d receives %d times the vector", n, most)
		}
		in := slices.Max(received(Cascade(n)))
		if in < n-1 || !odd && in != n-1 || 8*in > 13*(n-1) {
			t.Errorf("cascade of %d receives %d chunks", n, in)
		}
	}
}

// With at most one send and one receive of a rank in a round the model of Price
// is honest. Spans that wrap round count as one, as do strided chunks.
func TestOnePort(t *testing.T) {
	for n := 1; n <= most; n++ {
		all := []Schedule{Ring(n), Bruck(n), Halving(n), Binomial(n), BinomialGather(n), Dissemination(n), Doubling(1 << floorLog(n)),
			Cascade(1 << floorLog(n)), AllReduce(Tree(n, 1)), AllReduce(Tree(n, 2)), AllReduce(Tree(n, 7)), AllReduce(Tree(n, 12))}
		for _, s := range all {
			for i, round := range s.Rounds {
				out, in := make([]*Move, n), make([]*Move, n)
				for _, m := range round {
					if o, p := out[m.From], in[m.To]; o != nil && o.To != m.To || p != nil && p.From != m.From {
						t.Fatalf("%s of %d: round %d: %v is the second of its rank", s.Name, n, i, m)
					}
					out[m.From], in[m.To] = &m, &m
				}
			}
		}
	}
}

func TestArgumentsOutOfRangePanic(t *testing.T) {
	type generator struct {
		name     string
		generate func(int) Schedule
		square   bool
	}
	for _, g := range []generator{
		{"ring", Ring, true}, {"bruck", Bruck, true}, {"bruck", BruckAllToAll, true}, {"cascade", Cascade, true},
		{"direct", Direct, true}, {"direct", DirectAllToAll, true}, {"one-shot", OneShot, true}, {"pairwise", Pairwise, true},
		{"halving", Halving, false}, {"doubling", Doubling, false}, {"binomial", Binomial, false},
		{"binomial", BinomialGather, false}, {"direct", DirectGather, false}, {"dissemination", Dissemination, false},
		{"tree", func(n int) Schedule { return Tree(n, 4) }, false},
	} {
		for _, n := range []int{0, -1} {
			want := fmt.Sprintf("schedule: %s of %d ranks", g.name, n)
			if got := panics(func() { g.generate(n) }); got != want {
				t.Errorf("%s(%d) panics with %v", g.name, n, got)
			}
		}
		if got := panics(func() { g.generate(MaxRanks + 1) }); g.square != (got != nil) {
			t.Errorf("%s of %d ranks panics with %v", g.name, MaxRanks+1, got)
		}
	}
	for want, f := range map[string]func(){
		"schedule: binomial of 3 ranks has no rank 3":  func() { BinomialTo(3, 3) },
		"schedule: binomial of 3 ranks has no rank -1": func() { BinomialTo(3, -1) },
		"schedule: ring of 3 ranks has no rank 3":      func() { Broadcast(Ring(3), 3) },
		"schedule: bruck of 3 ranks has no rank -1":    func() { Reduce(Bruck(3), -1) },
		"schedule: tree of 0 chunks":                   func() { Tree(3, 0) },
		"schedule: canonical order of 0 ranks":         func() { CanonicalOrder(0) },
		"schedule:  of 0 ranks":                        func() { Schedule{}.Rotate(1) },
	} {
		if got := panics(f); got != want {
			t.Errorf("panics with %v, want %s", got, want)
		}
	}
}

// panics returns what f panics with, or nil.
func panics(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{16, 64, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				AllReduce(Ring(n)).Local(3)
			}
		})
	}
}
