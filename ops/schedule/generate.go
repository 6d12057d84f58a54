package schedule

// The generators panic when n is not positive, as make does; those whose number
// of moves grows with n² also when it is above MaxRanks, and those with a root
// when it is no rank. Each is valid for every other n.

// Ring is the reduce-scatter of Patarasuk and Yuan ("Bandwidth optimal
// all-reduce algorithms for clusters of workstations", 2009). Chunk c sets out
// from rank c+1, gathers every rank's part on its way round, and comes to
// rest, whole, on rank c.
//
// n chunks, n−1 rounds; each rank sends (n−1)/n of its bytes, the least
// possible, but waits for n−1 latencies.
func Ring(n int) Schedule {
	square("ring", n)
	s := Schedule{Name: "ring", Ranks: n, Chunks: n}
	for i := range n - 1 {
		s.Rounds = append(s.Rounds, onward(n, i+1, true))
	}
	return s
}

// onward is a round in which each rank sends the next one the chunk of the rank so far back.
func onward(n, back int, reduce bool) Round {
	round := make(Round, n)
	for r := range round {
		c := (r - back + n) % n
		round[r] = Move{From: r, To: (r + 1) % n, Src: c, Dst: c, N: 1, Reduce: reduce}
	}
	return round
}

// Halving is the reduce-scatter by recursive halving of Rabenseifner
// ("Optimization of collective reduction operations", 2004): partners at half
// the distance each round give each other half of what they still hold.
//
// With p the largest power of two up to n: p chunks, lg p rounds, chunk c
// whole on rank c, each rank sending (p−1)/p of its bytes. When n > p, ranks p
// and above first fold their whole vectors into ranks 0…n−p−1 and end with
// nothing: one more round of all their bytes, as in Thakur, Rabenseifner and
// Gropp ("Optimization of collective communication operations in MPICH",
// 2005). They fold neighbours; here it is the ranks at the end that step
// aside, so that the rest are numbered without gaps and all sums are canonical.
func Halving(n int) Schedule {
	p := powerOfTwo("halving", n)
	s := Schedule{Name: "halving", Ranks: n, Chunks: p}
	if n > p {
		s.Rounds = append(s.Rounds, fold(n, p, p))
	}
	for d := p / 2; d > 0; d /= 2 {
		round := make(Round, p)
		for r := range round {
			peer := r ^ d
			half := peer &^ (d - 1) // the one the peer keeps
			round[r] = Move{From: r, To: peer, Src: half, Dst: half, N: d, Reduce: true}
		}
		s.Rounds = append(s.Rounds, round)
	}
	return s
}

// BinomialGather collects chunk r of every rank r on rank 0 up a binomial
// tree; reversed it is the scatter from rank 0. For another root see Rotate.
//
// n chunks, ⌈lg n⌉ rounds, n−1 moves.
func BinomialGather(n int) Schedule {
	positive("binomial", n)
	s := Schedule{Name: "binomial", Ranks: n, Chunks: n}
	for d := 1; d < n; d *= 2 {
		var round Round
		for r := d; r < n; r += 2 * d {
			round = append(round, Move{From: r, To: r - d, Src: r, Dst: r, N: min(d, n-r)})
		}
		s.Rounds = append(s.Rounds, round)
	}
	return s
}

// Pairwise is the all-to-all: rank r's chunk p and rank p's chunk r change
// places. Both directions of an exchange share a round, so it needs no second
// buffer; the partners d ahead and d behind share one too, which halves the
// rounds and costs nothing, since a rank sends the same bytes.
//
// n chunks, ⌊n/2⌋ rounds, n(n−1) moves.
func Pairwise(n int) Schedule {
	square("pairwise", n)
	s := Schedule{Name: "pairwise", Ranks: n, Chunks: n}
	for d := 1; d <= n/2; d++ {
		round := make(Round, 0, 2*n)
		for r := range n {
			ahead := (r + d) % n
			round = append(round, Move{From: r, To: ahead, Src: ahead, Dst: r, N: 1})
		}
		for r := range n {
			behind := (r - d + n) % n
			if 2*d != n { // else it is the one ahead
				round = append(round, Move{From: r, To: behind, Src: behind, Dst: r, N: 1})
			}
		}
		s.Rounds = append(s.Rounds, round)
	}
	return s
}

// Dissemination is the barrier of Hensgen, Finkel and Manber ("Two algorithms
// for barrier synchronization", 1988): in round k rank r tells rank r+2ᵏ what
// it knows, and after ⌈lg n⌉ rounds every rank has heard, through others, from
// every rank. What is passed on is only that fact, so the bytes may be none.
//
// In the value the one chunk is the set of ranks heard from and a fold is its
// union; see BarrierContract. It is no sum: for most n a rank hears of another
// more than once.
func Dissemination(n int) Schedule {
	positive("dissemination", n)
	s := Schedule{Name: "dissemination", Ranks: n, Chunks: 1}
	for d := 1; d < n; d *= 2 {
		round := make(Round, n)
		for r := range round {
			round[r] = Move{From: r, To: (r + d) % n, N: 1, Reduce: true}
		}
		s.Rounds = append(s.Rounds, round)
	}
	return s
}
