package schedule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// arithmetic is what a schedule can be played with in earnest.
type arithmetic interface{ ~uint64 | ~float32 }

// A landing is a number that comes to a chunk in a round.
type landing[T arithmetic] struct {
	from int
	v    T
	fold bool
}

// run plays s on numbers, with no regard to what Check thinks of it: state[r][k]
// is chunk k of rank r.
func run[T arithmetic](s Schedule, state [][]T) {
	cells := make([][]landing[T], s.Ranks*s.Chunks)
	for _, round := range s.Rounds {
		for _, m := range round {
			for k := range m.N {
				at := m.To*s.Chunks + m.Dst + k
				cells[at] = append(cells[at], landing[T]{m.From, state[m.From][m.Src+k], m.Reduce})
			}
		}
		for at, all := range cells {
			if len(all) > 0 {
				r, k := at/s.Chunks, at%s.Chunks
				state[r][k] = land(r, state[r][k], all)
				cells[at] = all[:0]
			}
		}
	}
}

// land is what rank r has when all that came to a chunk is added up in the
// canonical order by rank. If a copy is among it each lands on the one before, as it might.
func land[T arithmetic](r int, v T, all []landing[T]) T {
	if slices.ContainsFunc(all, func(l landing[T]) bool { return !l.fold }) {
		for _, l := range all {
			if l.fold {
				v += l.v
			} else {
				v = l.v
			}
		}
		return v
	}
	if len(all) == 1 {
		return v + all[0].v
	}
	all = append(slices.Clone(all), landing[T]{r, v, true})
	slices.SortStableFunc(all, func(a, b landing[T]) int { return a.from - b.from })
	sum := make([]T, len(all))
	for i, l := range all {
		sum[i] = l.v
	}
	return evensAndOdds(sum)
}

// evensAndOdds adds up x in the canonical order, written here a second time.
func evensAndOdds[T arithmetic](x []T) T {
	if len(x) == 1 {
		return x[0]
	}
	var parts [2][]T
	for i, v := range x {
		parts[i%2] = append(parts[i%2], v)
	}
	return evensAndOdds(parts[0]) + evensAndOdds(parts[1])
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
			case sumAt(c, r, k):
				want = total[k]
			case c == AllGatherContract, c.kind == gather && r == c.root:
				want = start[k][k]
			case c.kind == broadcast, c.kind == scatter && r == k:
				want = start[c.root][k]
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
		if c.kind == reduction && whole != 1 {
			return fmt.Errorf("chunk %d is whole on %d ranks", k, whole)
		}
	}
	return nil
}

// sumAt reports whether c wants the sum of chunk k on rank r, of chunks one for
// each rank.
func sumAt(c Contract, r, k int) bool {
	switch c.kind {
	case allReduce:
		return true
	case reduceScatter:
		return r == k
	case reduce:
		return r == c.root
	}
	return false
}

// canonical plays s on floats whose sums depend on the order, and compares
// those that c wants with the canonical ones bit for bit.
func canonical(s Schedule, c Contract, seed uint64) error {
	state, columns := floats(s, seed), make([][]float32, s.Chunks)
	for k := range columns {
		for r := range s.Ranks {
			columns[k] = append(columns[k], state[r][k])
		}
	}
	run(s, state)
	for r := range s.Ranks {
		for k := range s.Chunks {
			if want := evensAndOdds(columns[k]); sumAt(c, r, k) && math.Float32bits(state[r][k]) != math.Float32bits(want) {
				return fmt.Errorf("chunk %d of rank %d is %v, canonically %v", k, r, state[r][k], want)
			}
		}
	}
	return nil
}

// floats are of very different magnitudes.
func floats(s Schedule, seed uint64) [][]float32 {
	rng := rand.New(rand.NewPCG(seed, 8))
	state := make([][]float32, s.Ranks)
	for r := range state {
		for range s.Chunks {
			state[r] = append(state[r], float32(rng.NormFloat64()*math.Exp2(float64(rng.IntN(24)))))
		}
	}
	return state
}

// replicas plays s on floats, whose sums depend on the order, and compares the
// ranks bit for bit.
func replicas(s Schedule, seed uint64) error {
	state := floats(s, seed)
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

// inexact is what floats say against s, when integers say nothing.
func inexact(s Schedule, c Contract, seed uint64) error {
	switch {
	case c.canonical:
		return canonical(s, c, seed)
	case c.kind == allReduce:
		return replicas(s, seed)
	}
	return nil
}
