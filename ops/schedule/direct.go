package schedule

// The direct schedules have every rank talk to every other at once, in one
// round: the least latency there is, at the price of n−1 messages a rank in the
// air together. Rank r begins with rank r+1, so that not all begin with the same.

// Direct is the reduce-scatter in which every rank sends chunk c straight to
// rank c. Rank c adds up what it gets in the canonical order. Reversed it is
// the direct all-gather, and AllReduce(Direct(n)) takes two rounds and the
// fewest bytes.
//
// n chunks, 1 round; each rank sends (n−1)/n of its bytes.
func Direct(n int) Schedule {
	square("direct", n)
	return everyone("direct", n, n, func(from, to int) Move {
		return Move{Src: to, Dst: to, Reduce: true}
	})
}

// OneShot is the all-reduce in which every rank sends its whole vector to every
// other, and each adds them all up in the canonical order.
//
// 1 chunk, 1 round; each rank sends n−1 times its bytes.
func OneShot(n int) Schedule {
	square("one-shot", n)
	return everyone("one-shot", n, 1, func(from, to int) Move {
		return Move{Reduce: true}
	})
}

// DirectAllToAll is Pairwise with all its exchanges in one round.
//
// n chunks, 1 round; each rank sends (n−1)/n of its bytes.
func DirectAllToAll(n int) Schedule {
	square("direct", n)
	return everyone("direct", n, n, func(from, to int) Move {
		return Move{Src: to, Dst: from}
	})
}

// DirectGather collects chunk r of every rank r on rank 0, straight; reversed
// it is the direct scatter. For another root see Rotate.
//
// n chunks, 1 round, n−1 moves.
func DirectGather(n int) Schedule {
	positive("direct", n)
	s := Schedule{Name: "direct", Ranks: n, Chunks: n}
	for r := 1; r < n; r++ {
		s.add(0, Move{From: r, To: 0, Src: r, Dst: r, N: 1})
	}
	return s
}

// everyone is a round in which each rank sends one chunk to each other, those
// that f says.
func everyone(name string, n, chunks int, f func(from, to int) Move) Schedule {
	s := Schedule{Name: name, Ranks: n, Chunks: chunks}
	for d := 1; d < n; d++ {
		for r := range n {
			m := f(r, (r+d)%n)
			m.From, m.To, m.N = r, (r+d)%n, 1
			s.add(0, m)
		}
	}
	return s
}
