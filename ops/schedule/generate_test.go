package schedule

import (
	"fmt"
	"math/bits"
	"testing"
)

// ceilLog is ⌈lg n⌉, floorLog ⌊lg n⌋.
func ceilLog(n int) int  { return bits.Len(uint(n - 1)) }
func floorLog(n int) int { return bits.Len(uint(n)) - 1 }

// sent is the most chunks that a rank sends over the whole of s, and moves the
// number of moves.
func sent(s Schedule) (most, moves int) {
	out := make([]int, s.Ranks)
	for _, round := range s.Rounds {
		moves += len(round)
		for _, m := range round {
			out[m.From] += m.N
			most = max(most, out[m.From])
		}
	}
	return most, moves
}

// The counts that the papers give: rounds, chunks sent by the busiest rank,
// and the size of the vector in chunks.
func TestClosedForms(t *testing.T) {
	for n := 1; n <= most; n++ {
		p := 1 << floorLog(n)
		folded := 0 // 1 when some ranks step aside
		if n > p {
			folded = 1
		}
		for _, c := range []struct {
			s                    Schedule
			rounds, sent, chunks int
		}{
			{Ring(n), n - 1, n - 1, n},
			{AllReduce(Ring(n)), 2 * (n - 1), 2 * (n - 1), n},
			{Halving(n), floorLog(n) + folded, p - 1 + folded, p},
			{Doubling(n), floorLog(n) + 2*folded, floorLog(n) + folded, 1},
			{Binomial(n), ceilLog(n), min(n-1, 1), 1},
			{Binomial(n).Reverse(), ceilLog(n), ceilLog(n), 1},
			{Pairwise(n), n / 2, n - 1, n},
			{Dissemination(n), ceilLog(n), ceilLog(n), 1},
		} {
			got, _ := sent(c.s)
			if n > p && c.s.Name == "halving" {
				got, c.sent = max(got, p), p // a rank that folds sends all its p chunks
			}
			if len(c.s.Rounds) != c.rounds || got != c.sent || c.s.Chunks != c.chunks || c.s.Ranks != n {
				t.Errorf("%s of %d: %d rounds, %d sent, %d chunks, %d ranks; want %d, %d, %d", c.s.Name, n,
					len(c.s.Rounds), got, c.s.Chunks, c.s.Ranks, c.rounds, c.sent, c.chunks)
			}
		}
		if _, moves := sent(Binomial(n)); moves != n-1 {
			t.Errorf("binomial of %d: %d moves", n, moves)
		}
		if _, moves := sent(BinomialGather(n)); moves != n-1 {
			t.Errorf("binomial-gather of %d: %d moves", n, moves)
		}
	}
}

// The executor gives each round's moves of a rank their own send and receive;
// at most one of each is what makes the model of Price honest.
func TestOnePort(t *testing.T) {
	for n := 1; n <= most; n++ {
		for _, s := range []Schedule{Ring(n), Halving(n), Doubling(n), Binomial(n), BinomialGather(n), Dissemination(n)} {
			for i, round := range s.Rounds {
				out, in := make([]int, n), make([]int, n)
				for _, m := range round {
					out[m.From]++
					in[m.To]++
					if out[m.From] > 1 || in[m.To] > 1 {
						t.Fatalf("%s of %d: round %d: %v is the second of its rank", s.Name, n, i, m)
					}
				}
			}
		}
	}
}

func TestRanksOutOfRangePanic(t *testing.T) {
	all := map[string]func(int) Schedule{
		"ring": Ring, "halving": Halving, "doubling": Doubling, "binomial": Binomial,
		"binomial-gather": BinomialGather, "pairwise": Pairwise, "dissemination": Dissemination,
	}
	for name, generate := range all {
		for _, n := range []int{0, -1} {
			want := fmt.Sprintf("schedule: %s of %d ranks", name, n)
			if got := panics(func() { generate(n) }); got != want {
				t.Errorf("%s(%d) panics with %v", name, n, got)
			}
		}
		got := panics(func() { generate(MaxRanks + 1) })
		if square := name == "ring" || name == "pairwise"; square != (got != nil) {
			t.Errorf("%s of %d ranks panics with %v", name, MaxRanks+1, got)
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
