package schedule

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

// add puts m into a round of a schedule that is being built.
func (s *Schedule) add(round int, m Move) {
	for len(s.Rounds) <= round {
		s.Rounds = append(s.Rounds, nil)
	}
	s.Rounds[round] = append(s.Rounds[round], m)
}

// tidy sorts the moves of every round by their ends and joins those that carry
// neighbouring chunks between the same two. It works on s's own rounds.
func (s Schedule) tidy() Schedule {
	for i, round := range s.Rounds {
		slices.SortFunc(round, func(a, b Move) int {
			return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Src, b.Src))
		})
		joined := round[:0]
		for _, m := range round {
			if k := len(joined) - 1; k >= 0 && joined[k].followedBy(m) {
				joined[k].N += m.N
			} else {
				joined = append(joined, m)
			}
		}
		s.Rounds[i] = joined
	}
	return s
}

// followedBy reports whether o carries on where m ends, at both ends.
func (m Move) followedBy(o Move) bool {
	next := m
	next.Src, next.Dst, next.N = m.Src+m.N, m.Dst+m.N, o.N
	return next == o
}

// wrap appends m to a round of a vector that is a circle of chunks: a span that
// runs over the end goes on at 0, as a move of its own.
func (m Move) wrap(round Round, chunks int) Round {
	for m.N > 0 {
		part := m
		part.N = min(m.N, chunks-m.Src, chunks-m.Dst)
		round = append(round, part)
		m.Src, m.Dst, m.N = (m.Src+part.N)%chunks, (m.Dst+part.N)%chunks, m.N-part.N
	}
	return round
}

// fold has ranks p…n−1 add all their chunks to ranks 0…n−p−1, and so step
// aside.
func fold(n, p, chunks int) Round {
	round := make(Round, n-p)
	for i := range round {
		round[i] = Move{From: p + i, To: i, N: chunks, Reduce: true}
	}
	return round
}

// log is ⌈lg n⌉.
func log(n int) int { return bits.Len(uint(n - 1)) }

// powerOfTwo is the largest power of two up to n.
func powerOfTwo(name string, n int) int {
	positive(name, n)
	return 1 << (bits.Len(uint(n)) - 1)
}

func positive(name string, n int) {
	if n < 1 {
		panic(fmt.Sprintf("schedule: %s of %d ranks", name, n))
	}
}

func member(name string, n, root int) {
	if root < 0 || root >= n {
		panic(fmt.Sprintf("schedule: %s of %d ranks has no rank %d", name, n, root))
	}
}

func square(name string, n int) {
	positive(name, n)
	if n > MaxRanks {
		panic(fmt.Sprintf("schedule: %s of %d ranks: at most %d", name, n, MaxRanks))
	}
}
