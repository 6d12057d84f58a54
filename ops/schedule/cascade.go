package schedule

import "slices"

// Doubling is the all-reduce by recursive doubling (Thakur, Rabenseifner and
// Gropp, "Optimization of collective communication operations in MPICH",
// 2005), farthest first: partners at half the distance each round add up each
// other's whole vector, so it is finished without a way back.
//
// Where they have ranks step aside when n is no power of two, here the halves
// of the canonical tree pair up, and a rank too many gets its sum from its
// neighbour, who sends twice. That saves two rounds, and makes every sum
// canonical.
//
// 1 chunk, ⌈lg n⌉ rounds; a rank sends ⌈lg n⌉ times its bytes, and once more at
// most when n is no power of two.
func Doubling(n int) Schedule {
	positive("doubling", n)
	s := Schedule{Name: "doubling", Ranks: n, Chunks: 1, Rounds: make([]Round, log(n))}
	nodes(0, n, func(v node) {
		for r := v.lo; r < v.hi; r++ {
			s.add(v.round, Move{From: v.opposite(r, v.mid), To: r, N: 1, Reduce: true})
		}
	})
	return s.On(n, leaves(n)).tidy()
}

// Binomial is BinomialTo rank 0; reversed it is the broadcast from rank 0.
func Binomial(n int) Schedule { return BinomialTo(n, 0) }

// BinomialTo reduces everything to the root up a tree that, for powers of two,
// is the binomial one, and for every n and root adds in the canonical order;
// reversed it is the broadcast from the root.
//
// 1 chunk, ⌈lg n⌉ rounds, n−1 moves: every other rank sends its vector once.
func BinomialTo(n, root int) Schedule {
	positive("binomial", n)
	member("binomial", n, root)
	s := Schedule{Name: "binomial", Ranks: n, Chunks: 1, Rounds: make([]Round, log(n))}
	ranks := leaves(n)
	toward(0, n, slices.Index(ranks, root), func(v node, from, to int) {
		s.add(v.round, Move{From: from, To: to, N: 1, Reduce: true})
	})
	return s.On(n, ranks).tidy()
}

// Cascade is the reduce-scatter by recursive halving for every n: for powers of
// two it is Halving, and for others its sums are canonical still. Chunk c goes up
// the canonical tree to rank c, as in BinomialTo, all chunks at once.
//
// n chunks, ⌈lg n⌉ rounds; each rank sends (n−1)/n of its bytes, the least
// possible, in n−1 messages at most. When n is no power of two some ranks
// receive up to five eighths as much again.
func Cascade(n int) Schedule {
	square("cascade", n)
	s := Schedule{Name: "cascade", Ranks: n, Chunks: n, Rounds: make([]Round, log(n))}
	ranks := leaves(n)
	for place, c := range ranks {
		toward(0, n, place, func(v node, from, to int) {
			s.add(v.round, Move{From: from, To: to, Src: c, Dst: c, N: 1, Reduce: true})
		})
	}
	return s.On(n, ranks).tidy()
}
