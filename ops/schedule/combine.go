package schedule

import (
	"fmt"
	"slices"
)

// AllReduce makes an all-reduce of a reduction, such as Ring, Halving or
// Binomial: what s has added up on some ranks goes back to all on the same
// paths. Doubling needs no such help.
func AllReduce(s Schedule) Schedule {
	t := s.Then(s.Reverse())
	t.Name = "all-reduce(" + s.Name + ")"
	return t
}

// Broadcast makes the broadcast of a large vector from a reduce-scatter, such
// as Ring or Bruck: the root deals its chunks out down a binomial tree, and all
// pass on what they have the way of s, reversed (Barnett, Gupta, Payne, Shuler,
// van de Geijn and Watts, "Interprocessor collective communication library",
// 1994). s must keep ReduceScatterContract.
func Broadcast(s Schedule, root int) Schedule {
	t := rooted(s, root).Reverse().Then(s.Reverse())
	t.Name = "broadcast(" + s.Name + ")"
	return t
}

// Reduce makes the reduction of a large vector from a reduce-scatter: what s has
// added up, chunk r on rank r, is gathered by the root. s must keep
// ReduceScatterContract; the sums are those of s.
func Reduce(s Schedule, root int) Schedule {
	t := s.Then(rooted(s, root))
	t.Name = "reduce(" + s.Name + ")"
	return t
}

func rooted(s Schedule, root int) Schedule {
	positive(s.Name, s.Ranks)
	member(s.Name, s.Ranks, root)
	return BinomialGather(s.Ranks).Rotate(root)
}

// Hierarchical is the all-reduce for worlds of slow links between groups of
// fast ones, and for worlds too large for a ring: each group reduces to its
// first rank, the heads all-reduce by the schedule that heads makes for their
// number, and each head broadcasts to its group. The groups share out the
// ranks 0…n−1, n being the sum of their sizes; it panics if they do not.
func Hierarchical(groups [][]int, heads func(n int) Schedule) Schedule {
	ranks := slices.Concat(groups...)
	n := len(ranks)
	distinct("hierarchical", n, ranks)
	up := Schedule{Ranks: n, Chunks: 1}
	var first []int
	for _, g := range groups {
		up = up.With(Binomial(len(g)).On(n, g))
		first = append(first, g[0])
	}
	mid := heads(len(first))
	s := up.Then(mid.On(n, first)).Then(up.Reverse())
	s.Name = "hierarchical(" + mid.Name + ")"
	return s
}

// Then runs s and, after it, t. Both must be of one world. If their chunks
// differ in number, both are refined to the least common multiple.
func (s Schedule) Then(t Schedule) Schedule {
	s, t = alike(s, t)
	s.Name += " then " + t.Name
	s.Rounds = slices.Concat(s.Rounds, t.Rounds)
	return s
}

// With runs s and t side by side, round k of one with round k of the other.
// They must be of one world, as for Then, and land on different chunks or
// different ranks, which Check sees to.
func (s Schedule) With(t Schedule) Schedule {
	s, t = alike(s, t)
	s.Name += " with " + t.Name
	rounds := make([]Round, max(len(s.Rounds), len(t.Rounds)))
	for i := range rounds {
		if i < len(s.Rounds) {
			rounds[i] = s.Rounds[i]
		}
		if i < len(t.Rounds) {
			rounds[i] = slices.Concat(rounds[i], t.Rounds[i])
		}
	}
	s.Rounds = rounds
	return s
}

// Reverse plays s backwards with every arrow turned round and nothing folded.
// It takes a reduction to the distribution that undoes it: reduce to
// broadcast, reduce-scatter to all-gather, gather to scatter.
func (s Schedule) Reverse() Schedule {
	s.Name = "reverse(" + s.Name + ")"
	rounds := make([]Round, 0, len(s.Rounds))
	for _, round := range slices.Backward(s.Rounds) {
		rounds = append(rounds, round.reverse())
	}
	s.Rounds = rounds
	return s
}

func (r Round) reverse() Round {
	back := make(Round, len(r))
	for i, m := range r {
		back[i] = Move{From: m.To, To: m.From, Src: m.Dst, Dst: m.Src, N: m.N}
	}
	return back
}

// On runs s among some ranks of a world of n, ranks[i] in the place of i: a
// rotation moves the root, a subset makes a group. Chunks stay as they are
// numbered. It panics unless ranks are s.Ranks different ranks of the world.
func (s Schedule) On(n int, ranks []int) Schedule {
	if len(ranks) != s.Ranks {
		panic(fmt.Sprintf("schedule: %s of %d ranks on %d", s.Name, s.Ranks, len(ranks)))
	}
	distinct(s.Name, n, ranks)
	s.Ranks = n
	return s.each(func(m Move) Move {
		m.From, m.To = ranks[m.From], ranks[m.To]
		return m
	})
}

// Rotate moves every part of s on by k ranks, so that rank k has the part of
// rank 0: it moves the root of a schedule whose root is 0. Where the chunks can
// be dealt to the ranks they move with their ranks, so that a gather still has
// chunk r from rank r; a span that then runs over the end becomes two moves.
func (s Schedule) Rotate(k int) Schedule {
	positive(s.Name, s.Ranks)
	k = (k%s.Ranks + s.Ranks) % s.Ranks
	if k == 0 {
		return s
	}
	shift := 0
	if s.Chunks%s.Ranks == 0 {
		shift = k * (s.Chunks / s.Ranks)
	}
	rounds := make([]Round, len(s.Rounds))
	for i, round := range s.Rounds {
		for _, m := range round {
			m.From, m.To = (m.From+k)%s.Ranks, (m.To+k)%s.Ranks
			m.Src, m.Dst = (m.Src+shift)%s.Chunks, (m.Dst+shift)%s.Chunks
			rounds[i] = m.wrap(rounds[i], s.Chunks)
		}
	}
	s.Rounds = rounds
	return s
}

// Refine cuts every chunk into k, so that s can be joined with a schedule of
// finer ones. It panics unless k is positive.
func (s Schedule) Refine(k int) Schedule {
	if k < 1 {
		panic(fmt.Sprintf("schedule: %s refined by %d", s.Name, k))
	}
	if k == 1 {
		return s
	}
	s.Chunks *= k
	return s.each(func(m Move) Move {
		m.Src, m.Dst, m.N = m.Src*k, m.Dst*k, m.N*k
		return m
	})
}

func (s Schedule) each(f func(Move) Move) Schedule {
	rounds := make([]Round, len(s.Rounds))
	for i, round := range s.Rounds {
		rounds[i] = make(Round, len(round))
		for j, m := range round {
			rounds[i][j] = f(m)
		}
	}
	s.Rounds = rounds
	return s
}

// alike refines s and t to the same number of chunks.
func alike(s, t Schedule) (Schedule, Schedule) {
	if s.Ranks != t.Ranks || s.Chunks < 1 || t.Chunks < 1 {
		panic(fmt.Sprintf("schedule: %s of %d ranks and %d chunks joined with %s of %d and %d",
			s.Name, s.Ranks, s.Chunks, t.Name, t.Ranks, t.Chunks))
	}
	d := gcd(s.Chunks, t.Chunks)
	return s.Refine(t.Chunks / d), t.Refine(s.Chunks / d)
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func distinct(name string, n int, ranks []int) {
	seen := make([]bool, n)
	for _, r := range ranks {
		if r < 0 || r >= n || seen[r] {
			panic(fmt.Sprintf("schedule: %s on rank %d twice or not of %d", name, r, n))
		}
		seen[r] = true
	}
}
