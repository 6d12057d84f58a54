package schedule

import "testing"

// collides reports whether two moves of a round land on one chunk where they may
// not: one of them copies, or both are from the same rank.
func collides(s Schedule) bool {
	for _, round := range s.Rounds {
		for i, m := range round {
			for _, o := range round[:i] {
				if m.To == o.To && m.Dst < o.Dst+o.N && o.Dst < m.Dst+m.N && !(m.Reduce && o.Reduce && m.From != o.From) {
					return true
				}
			}
		}
	}
	return false
}

// every calls f with each schedule of three ranks, one chunk and two rounds of
// at most three moves.
func every(f func(Schedule)) {
	var moves []Move
	for from := range 3 {
		for to := range 3 {
			if from != to {
				moves = append(moves, Move{From: from, To: to, N: 1}, Move{From: from, To: to, N: 1, Reduce: true})
			}
		}
	}
	rounds := []Round{nil}
	for i, m := range moves {
		rounds = append(rounds, Round{m})
		for j, o := range moves[:i] {
			rounds = append(rounds, Round{o, m})
			for _, p := range moves[:j] {
				rounds = append(rounds, Round{p, o, m})
			}
		}
	}
	for _, a := range rounds {
		for _, b := range rounds {
			s := Schedule{Name: "s", Ranks: 3, Chunks: 1, Rounds: []Round{a, b}}
			if len(a)+len(b) <= 4 {
				f(s)
			}
		}
	}
}

// In a small enough world all schedules can be tried. There Check not only
// accepts nothing that is wrong; collisions apart, it refuses nothing that is
// right.
func TestExhaustively(t *testing.T) {
	for _, c := range []Contract{ReductionContract, ReduceContract(0), BroadcastContract(0)} {
		tried, kept := 0, 0
		every(func(s Schedule) {
			tried++
			err, wrong, collision := Check(s, c), sums(s, c, 5), collides(s)
			switch {
			case err == nil && (wrong != nil || collision):
				t.Fatalf("accepted, but %v, collision %v:\n%v", wrong, collision, s)
			case err != nil && wrong == nil && !collision:
				t.Fatalf("refused although right: %v\n%v", err, s)
			case err == nil:
				kept++
			}
		})
		t.Logf("%d of %d schedules are a %v", kept, tried, c)
		if tried < 10_000 || kept < 100 {
			t.Error("the test no longer tests what it claims")
		}
	}
}
