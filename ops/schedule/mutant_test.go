package schedule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// arithmetic is what a schedule can be played with in earnest.
type arithmetic interface{ ~uint64 | ~float32 }

// run plays s on numbers, with no regard to what Check thinks of it: state[r][k]
// is chunk k of rank r. When two moves of a round land on one chunk the later
// in the round lands later, as it might.
func run[T arithmetic](s Schedule, state [][]T) {
	for _, round := range s.Rounds {
		before := make([][]T, len(state))
		for r := range state {
			before[r] = slices.Clone(state[r])
		}
		for _, m := range round {
			for k := range m.N {
				v := before[m.From][m.Src+k]
				if m.Reduce {
					v += state[m.To][m.Dst+k]
				}
				state[m.To][m.Dst+k] = v
			}
		}
	}
}

// sums plays s on random integers and compares the end with c, written here a
// second time and for people: no demand, no symbol, one chunk for each rank.
func sums(s Schedule, c Contract, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 7))
	start := make([][]uint64, s.Ranks)
	total := make([]uint64, s.Chunks)
	for r := range start {
		for k := range s.Chunks {
			start[r] = append(start[r], rng.Uint64())
			total[k] += start[r][k]
		}
	}
	end := make([][]uint64, s.Ranks)
	for r := range end {
		end[r] = slices.Clone(start[r])
	}
	run(s, end)
	for k := range s.Chunks {
		whole := 0
		for r := range s.Ranks {
			want, bound := uint64(0), true
			switch {
			case c == AllReduceContract, c == ReduceScatterContract && r == k, c == ReduceContract(0) && r == 0:
				want = total[k]
			case c == AllGatherContract, c == GatherContract(0) && r == 0:
				want = start[k][k]
			case c == BroadcastContract(0), c == ScatterContract(0) && r == k:
				want = start[0][k]
			case c == AllToAllContract:
				want = start[k][r]
			default:
				bound = false
			}
			if bound && end[r][k] != want {
				return fmt.Errorf("rank %d chunk %d ends with %#x, want %#x", r, k, end[r][k], want)
			}
			if end[r][k] == total[k] {
				whole++
			}
		}
		if c == ReductionContract && whole != 1 {
			return fmt.Errorf("chunk %d is whole on %d ranks", k, whole)
		}
	}
	return nil
}

// replicas plays s on floats of very different magnitudes, whose sums depend
// on the order, and compares the ranks bit for bit.
func replicas(s Schedule, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 8))
	state := make([][]float32, s.Ranks)
	for r := range state {
		for range s.Chunks {
			state[r] = append(state[r], float32(rng.NormFloat64()*math.Exp2(float64(rng.IntN(24)))))
		}
	}
	run(s, state)
	for r := range state {
		for k, v := range state[r] {
			if math.Float32bits(v) != math.Float32bits(state[0][k]) {
				return fmt.Errorf("chunk %d is %v on rank 0 and %v on rank %d", k, state[0][k], v, r)
			}
		}
	}
	return nil
}

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
	const each = 500
	rng := rand.New(rand.NewPCG(1, 2))
	var mutants, accepted, strict int
	kinds := map[string]int{}
	for _, n := range []int{4, 5, 7, 8} {
		for _, p := range basics(n) {
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
				if p.c == AllReduceContract && wrong == nil {
					wrong = replicas(s, rng.Uint64())
				}
				switch {
				case err == nil && wrong != nil:
					t.Fatalf("%s: accepted, but %v:\n%v", kind, wrong, s)
				case err == nil:
					accepted++
				case wrong == nil:
					strict++
					if why := err.Error(); !strings.Contains(why, "lands on") && !strings.Contains(why, "another order") {
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
	if mutants < 20_000 || accepted < 100 || strict > mutants/10 || len(kinds) != 10 {
		t.Error("the test no longer tests what it claims")
	}
	for kind, count := range kinds {
		if count < 300 {
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
