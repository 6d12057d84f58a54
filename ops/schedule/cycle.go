package schedule

// Cycle is an all-reduce round one ring in one direction: Ring, and then what is whole
// goes on to the next rank instead of back on its path, as in AllReduce(Ring(n)). Sums,
// bytes and rounds are those of that. But a rank sends to one rank and receives from one
// from beginning to end, so no link rests for half of the time. A long one that has rested
// has to find its rate again: Linux lets a connection begin anew after a time-out's rest
// (RFC 5681, section 4.1), several round trips of slow start.
//
// n chunks, 2(n−1) rounds; each rank sends 2(n−1)/n of its bytes, the least possible.
func Cycle(n int) Schedule {
	s := Ring(n)
	s.Name = "all-reduce(cycle)"
	for i := range n - 1 {
		s.Rounds = append(s.Rounds, onward(n, i, false))
	}
	return s
}
