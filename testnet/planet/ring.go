package planet

import (
	"slices"
	"time"

	"peermesh/ops/schedule"
)

// ring is schedule.AllReduce(schedule.Ring(n)), whose second half goes the other way
// round.
func ring(n int) Plan {
	around := ringPhase(n)
	return Plan{Name: "ring", Ranks: n, Chunks: n, Moves: 2 * n * (n - 1), Rounds: func(yield func(schedule.Round) bool) {
		for i := range around.count {
			if !yield(around.at(i)) {
				return
			}
		}
		for i := range around.count {
			round := around.at(around.count - 1 - i)
			for k, m := range round {
				round[k] = turned(m)
			}
			if !yield(round) {
				return
			}
		}
	}}
}

// RingPrice is the price of an all_reduce around all ranks in some order, without its
// 2n(n−1) moves. All chunks take the same time w on a port. In max-plus algebra every
// round multiplies by one matrix: rank i is done w after itself, and w and a latency after
// the one before. So after n−1 rounds, where no latency is negative, rank i has waited
// for (n−1)·w and all latencies of the ring but its own to the next rank. The way back
// is the same again, and the worst of it begins and ends beside the shortest hop:
//
//	2(n−1)·w + 2·(sum of the latencies − the least of them)
func (w *World) RingPrice(order []int, bytes int) time.Duration {
	n := len(order)
	if n < 2 {
		return 0
	}
	hops := make([]time.Duration, n)
	var sum time.Duration
	for i, r := range order {
		hops[i] = w.Latency(r, order[(i+1)%n])
		sum += hops[i]
	}
	wire := time.Duration(float64(bytes) / float64(n) / w.Map.Rate * 1e9)
	return 2*time.Duration(n-1)*wire + 2*(sum-slices.Min(hops))
}
