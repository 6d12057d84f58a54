package schedule

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestCanonicalOrder(t *testing.T) {
	for n, want := range map[int]string{
		1: "0",
		2: "0+1",
		3: "(0+2)+1",
		4: "(0+2)+(1+3)",
		5: "((0+4)+2)+(1+3)",
		6: "((0+4)+2)+((1+5)+3)",
		7: "((0+4)+(2+6))+((1+5)+3)",
		8: "((0+4)+(2+6))+((1+5)+(3+7))",
		9: "(((0+8)+4)+(2+6))+((1+5)+(3+7))",
	} {
		if got := CanonicalOrder(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	for n := 1; n <= 100; n++ { // no rank deeper than ⌈lg n⌉
		depth, deepest := 1, 0
		for _, c := range CanonicalOrder(n) {
			switch c {
			case '(':
				depth++
			case ')':
				depth--
			}
			deepest = max(deepest, depth)
		}
		if n > 1 && deepest != ceilLog(n) {
			t.Errorf("%d ranks: %d deep", n, deepest)
		}
	}
}

// What every canonical schedule adds up is the same float, in any size of
// vector, and Fold's; ring and Bruck, which are not, show that floats can
// tell.
func TestCanonicalBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	differ := 0
	for n := 2; n <= 17; n++ {
		column := make([]float32, n)
		for r := range column {
			column[r] = float32(rng.NormFloat64() * math.Exp2(float64(rng.IntN(24))))
		}
		want := Fold(column, func(a, b float32) float32 { return a + b })
		for _, s := range []Schedule{
			Doubling(n), OneShot(n), AllReduce(Binomial(n)), AllReduce(Cascade(n)), AllReduce(Direct(n)),
			AllReduce(Cascade(n).Refine(3)), Reduce(Direct(n), n-1), Reduce(Cascade(n), n-1), BinomialTo(n, n-1),
			AllReduce(Halving(n)), AllReduce(Ring(n)), AllReduce(Bruck(n)),
		} {
			state := make([][]float32, n)
			for r := range state {
				for range s.Chunks {
					state[r] = append(state[r], column[r])
				}
			}
			run(s, state)
			for k, got := range state[n-1] {
				same := math.Float32bits(got) == math.Float32bits(want)
				if name := s.Algorithm(); name == "ring" || name == "bruck" {
					if !same {
						differ++
					}
				} else if !same {
					t.Errorf("%s of %d: chunk %d is %v, want %v", s.Name, n, k, got, want)
				}
			}
		}
	}
	if differ < 50 {
		t.Errorf("only %d sums in other orders came out otherwise", differ)
	}
}

// What is right in every other respect is no canonical sum, and the refusal
// says how it was added up.
func TestNotCanonical(t *testing.T) {
	for _, c := range []struct {
		s    Schedule
		c    Contract
		want string
	}{
		{AllReduce(Ring(4)), AllReduceContract, "as 0+((1+2)+3), not as (0+2)+(1+3)"},
		{Ring(4), ReduceScatterContract, "not as (0+2)+(1+3)"},
		{Bruck(3), ReduceScatterContract, "chunk 0 of rank 0, last written in round 1 by 2→0 [0]+, is added up as (0+1)+2, not as (0+2)+1"},
		{Tree(4, 2), ReduceContract(0), "not as (0+2)+(1+3)"},
		{Binomial(3).Rotate(1), ReduceContract(1), "as (0+1)+2, not as (0+2)+1"},
		{Binomial(4).On(4, []int{0, 2, 1, 3}), ReductionContract, "as (0+1)+(2+3), not as (0+2)+(1+3)"},
		{Ring(32), ReductionContract, "is not added up in the canonical order"},
		{BinomialTo(4, 1), ReduceContract(0), "lacks the contribution of rank 1"},
		{Dissemination(3), AllReduceContract, "is counted twice"},
	} {
		err := Check(c.s, c.c.Canonical())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.s.Name, err, c.want)
		}
	}
	if err := Check(Ring(5).Reverse(), AllGatherContract.Canonical()); err != nil {
		t.Errorf("nothing is added up, but %v", err)
	}
}

// Several folds of a round are one canonical sum; rank 3 of three others stands
// in its own place among them.
func TestSeveralFoldsInARound(t *testing.T) {
	const text = "all to 1: 4 ranks, 1 chunks\n  0   3→1 [0]+  0→1 [0]+  2→1 [0]+\n"
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(s, ReduceContract(1).Canonical()); err != nil {
		t.Error(err)
	}
	state := [][]float32{{1e8}, {1}, {-1e8}, {1}}
	run(s, state)
	if state[1][0] != 2 { // (1e8 − 1e8) + (1 + 1)
		t.Errorf("got %v", state[1][0])
	}
	// A sum of sums by the ranks that bring them, (0+1)+(2+3), is not canonical.
	s, _ = Parse("in two: 4 ranks, 1 chunks\n  0   1→0 [0]+  3→2 [0]+\n  1   2→0 [0]+\n")
	if Check(s, ReduceContract(0)) != nil || Check(s, ReduceContract(0).Canonical()) == nil {
		t.Error("two rounds are taken for one")
	}
}

// A crowd on one chunk costs no more than its sorting, and the refusal of one
// copy among many folds is found at once.
func TestCrowds(t *testing.T) {
	const n = 30_000
	crowd := Schedule{Ranks: n, Chunks: 1, Rounds: []Round{nil}}
	for r := 1; r < n; r++ {
		crowd.Rounds[0] = append(crowd.Rounds[0], Move{From: r, To: 0, N: 1, Reduce: true})
	}
	if err := Check(crowd, ReduceContract(0).Canonical()); err != nil {
		t.Error(err)
	}
	crowd.Rounds[0][n-2].From = n - 2
	if err := Check(crowd, ReduceContract(0)); err == nil || !strings.Contains(err.Error(), "29998→0 [0]+: lands on chunk 0 of rank 0") {
		t.Error(err)
	}
}

// To prove the canonical order takes no more than to prove that copies agree: a chunk's
// canonical sum is found once, not once a rank. (Looked for on every rank, these took
// the better part of a minute.)
func TestCanonicalAmongMany(t *testing.T) {
	for _, s := range []Schedule{Halving(MaxRanks), AllReduce(Cascade(MaxRanks / 4)), AllReduce(Direct(MaxRanks / 4))} {
		c := AllReduceContract
		if s.Algorithm() == "halving" {
			c = ReduceScatterContract
		}
		if err := Check(s, c.Canonical()); err != nil {
			t.Error(err)
		}
	}
}
