package schedule

import "math/bits"

// Bruck is a reduce-scatter in the fewest rounds and the fewest bytes at once,
// for every n: the all-gather of Bruck, Ho, Kipnis, Upfal and Weathersby
// ("Efficient algorithms for all-to-all communications in multiport
// message-passing systems", 1997) run backwards, as Träff proposes ("Optimal,
// non-pipelined reduce-scatter and allreduce algorithms", 2024). Rank r adds to
// rank r+d what it has of the d chunks from r+d on, for d half as large each
// round. Reversed it is Bruck's all-gather, with every chunk in its own place
// from the start, so that nothing need be rotated at the end.
//
// n chunks, ⌈lg n⌉ rounds; each rank sends (n−1)/n of its bytes, in one or two
// spans a round.
func Bruck(n int) Schedule {
	square("bruck", n)
	s := Schedule{Name: "bruck", Ranks: n, Chunks: n, Rounds: make([]Round, log(n))}
	for i := range s.Rounds {
		d := 1 << (len(s.Rounds) - 1 - i)
		for r := range n {
			to := (r + d) % n
			span := Move{From: r, To: to, Src: to, Dst: to, N: min(d, n-d), Reduce: true}
			s.Rounds[i] = span.wrap(s.Rounds[i], n)
		}
	}
	return s
}

// BruckAllToAll is the all-to-all of Bruck and others (1997) for chunks so small
// that rounds matter more than bytes: a chunk for the rank j ahead travels in
// hops of powers of two, one for each bit of j, together with all others that
// have that bit.
//
// Here the chunk for the rank j behind goes backwards, in the same rounds. That
// halves the longest way; and since on each rank the chunk for j ahead leaves in
// the round in which that from j ahead comes, they change places, and no second
// buffer, nor a rotation before and after, is needed.
//
// n chunks, ⌊lg n⌋ rounds with one partner ahead and one behind; a rank sends
// (lg n − 1)/2 times its bytes and a chunk for powers of two, about as many for
// others.
func BruckAllToAll(n int) Schedule {
	square("bruck", n)
	s := Schedule{Name: "bruck", Ranks: n, Chunks: n, Rounds: make([]Round, bits.Len(uint(n/2)))}
	for i := range s.Rounds {
		d := 1 << i
		for r := range n {
			for j := d; j <= n/2; j++ {
				if j&d == 0 {
					continue
				}
				s.add(i, hop(n, r, j, d))
				if 2*j != n { // else it is the one ahead
					s.add(i, hop(n, r, -j, -d))
				}
			}
		}
	}
	return s.tidy()
}

// hop takes a chunk on its way from some rank to the one j ahead (behind, if
// negative) from r to r+d. On rank r it is found in place r+j before its first
// hop, and then always in r−j, where it will be looked for at the end.
func hop(n, r, j, d int) Move {
	mod := func(x int) int { return (x + 2*n) % n }
	to := mod(r + d)
	m := Move{From: r, To: to, Src: mod(r - j), Dst: mod(to - j), N: 1}
	if first := j & -j; first == d || -first == d {
		m.Src = mod(r + j)
	}
	return m
}
