package schedule

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func clone(s Schedule) Schedule {
	s.Rounds = slices.Clone(s.Rounds)
	for i := range s.Rounds {
		s.Rounds[i] = slices.Clone(s.Rounds[i])
	}
	return s
}

// mutate changes one thing about s, in place, and says what.
func mutate(s *Schedule, rng *rand.Rand) string {
	i := rng.IntN(len(s.Rounds))
	for len(s.Rounds[i]) == 0 {
		i = rng.IntN(len(s.Rounds))
	}
	j := rng.IntN(len(s.Rounds[i]))
	m, other := &s.Rounds[i][j], rng.IntN(len(s.Rounds))
	switch rng.IntN(10) {
	case 0:
		m.Reduce = !m.Reduce
		return "flip"
	case 1:
		m.To = rng.IntN(s.Ranks)
		return "to"
	case 2:
		m.From = rng.IntN(s.Ranks)
		return "from"
	case 3:
		m.Src = rng.IntN(s.Chunks)
		return "src"
	case 4:
		m.Dst = rng.IntN(s.Chunks)
		return "dst"
	case 5:
		m.N = 1 + rng.IntN(s.Chunks)
		return "n"
	case 6:
		s.Rounds[i] = slices.Delete(s.Rounds[i], j, j+1)
		return "drop"
	case 7:
		s.Rounds[other] = append(s.Rounds[other], *m)
		return "repeat"
	case 8:
		moved := *m
		s.Rounds[i] = slices.Delete(s.Rounds[i], j, j+1)
		s.Rounds[other] = append(s.Rounds[other], moved)
		return "move"
	default:
		s.Rounds[i], s.Rounds[other] = s.Rounds[other], s.Rounds[i]
		return "swap"
	}
}

// same compares schedules as sets of moves: the order within a round is not a
// difference.
func same(s, t Schedule) bool {
	for i := range s.Rounds {
		if len(s.Rounds[i]) != len(t.Rounds[i]) {
			return false
		}
		for _, m := range s.Rounds[i] {
			if !slices.Contains(t.Rounds[i], m) {
				return false
			}
		}
	}
	return true
}

// The proof against arithmetic: whatever is done to a schedule, Check must not
// accept what integers show to be wrong, nor replicas that differ in a bit.
// The reverse may happen for two reasons only, about which Check is stricter:
// two landings in a round, and order.
func TestMutants(t *testing.T) {
	const each = 150
	rng := rand.New(rand.NewPCG(1, 2))
	var mutants, accepted, strict int
	kinds := map[string]int{}
	for _, n := range []int{4, 5, 7, 8} {
		for _, p := range append(basics(n), at(n, 2)...) {
			if p.c == BarrierContract {
				continue // no sum to compare with; see TestMutantBarriers
			}
			for range each {
				s := clone(p.s)
				kind := mutate(&s, rng)
				if same(s, p.s) {
					continue
				}
				mutants++
				err := Check(s, p.c)
				if s.wellFormed() != nil {
					if err == nil {
						t.Fatalf("malformed but accepted:\n%v", s)
					}
					continue
				}
				wrong := sums(s, p.c, rng.Uint64())
				if wrong == nil {
					wrong = inexact(s, p.c, rng.Uint64())
				}
				switch {
				case err == nil && wrong != nil:
					t.Fatalf("%s: accepted, but %v:\n%v", kind, wrong, s)
				case err == nil:
					accepted++
				case wrong == nil:
					strict++
					if why := err.Error(); !strings.Contains(why, "lands on") && !strings.Contains(why, "another order") &&
						!strings.Contains(why, "is added up as") {
						t.Fatalf("%s: refused without cause: %v\n%v", kind, err, s)
					}
				default:
					kinds[kind]++
				}
			}
		}
	}
	t.Logf("%d mutants: %d harmless and accepted, %d refused though the numbers came out, wrong and refused %v",
		mutants, accepted, strict, kinds)
	if mutants < 15_000 || accepted < 100 || strict > mutants/10 || len(kinds) != 10 {
		t.Error("the test no longer tests what it claims")
	}
	for kind, count := range kinds {
		if count < 200 {
			t.Errorf("only %d mutants were wrong by %s", count, kind)
		}
	}
}

// The same for the barrier, played on sets of ranks.
func TestMutantBarriers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	refused := 0
	for range 5000 {
		n := 3 + rng.IntN(7)
		s := clone(Dissemination(n))
		mutate(&s, rng)
		if s.wellFormed() != nil {
			continue
		}
		heard := make([]uint64, n)
		for r := range heard {
			heard[r] = 1 << r
		}
		for _, round := range s.Rounds {
			before := slices.Clone(heard)
			for _, m := range round {
				if m.Reduce {
					heard[m.To] |= before[m.From]
				} else {
					heard[m.To] = before[m.From]
				}
			}
		}
		met := true
		for _, h := range heard {
			met = met && h == 1<<n-1
		}
		err := Check(s, BarrierContract)
		if err == nil && !met {
			t.Fatalf("accepted, but ranks heard %b:\n%v", heard, s)
		}
		if err != nil && !met {
			refused++
		}
	}
	if refused < 1000 {
		t.Errorf("only %d barriers were broken", refused)
	}
}
