package schedule

import (
	"iter"
	"math"
	"slices"
	"time"
)

// Links says what the way from one rank to another costs. For every rank to
// choose the same schedule all must be given the same figures.
type Links interface {
	Latency(from, to int) time.Duration
	Rate(from, to int) float64 // bytes per second
}

// Uniform is a network of equal links.
type Uniform struct {
	Delay          time.Duration
	BytesPerSecond float64
}

// Latency is u.Delay between any two ranks.
func (u Uniform) Latency(from, to int) time.Duration { return u.Delay }

// Rate is u.BytesPerSecond between any two ranks.
func (u Uniform) Rate(from, to int) float64 { return u.BytesPerSecond }

// Never is the price of a schedule that uses a link of no rate.
const Never = time.Duration(math.MaxInt64)

// Price predicts when the last rank is done with s on a vector of the given
// bytes, if all start together. Each rank has one way out and one way in,
// which its messages of a round share one after the other in the round's
// order, and enters a round when its own part of the last is done: ranks that
// are idle in a round run ahead of the others. Folding is free. It is Hockney's
// model (latency + bytes / rate) with one port each way.
//
// Times are whole nanoseconds, and nothing is both multiplied and added, so
// that no processor fuses the two: machines of every kind get the same price.
func Price(s Schedule, bytes int, l Links) time.Duration {
	return PriceRounds(s.Ranks, s.Chunks, slices.Values(s.Rounds), bytes, l)
}

// PriceRounds is Price for a schedule whose rounds come one after the other, as of one
// that is too large to be there as a whole. A round is looked at before the next comes.
func PriceRounds(ranks, chunks int, rounds iter.Seq[Round], bytes int, l Links) time.Duration {
	now := make([]time.Duration, ranks)
	out := make([]time.Duration, ranks)
	in := make([]time.Duration, ranks)
	for round := range rounds {
		copy(out, now)
		copy(in, now)
		for _, m := range round {
			wire := transfer(float64(bytes)*float64(m.N)/float64(chunks), l.Rate(m.From, m.To))
			out[m.From] = plus(out[m.From], wire)
			in[m.To] = max(plus(in[m.To], wire), plus(out[m.From], max(l.Latency(m.From, m.To), 0)))
		}
		for r := range now {
			now[r] = max(out[r], in[r])
		}
	}
	var last time.Duration
	for _, t := range now {
		last = max(last, t)
	}
	return last
}

// transfer is how long bytes occupy a link.
func transfer(bytes, rate float64) time.Duration {
	if bytes == 0 {
		return 0
	}
	ns := bytes / rate * 1e9
	if !(rate > 0) || ns >= float64(Never) {
		return Never
	}
	return time.Duration(ns)
}

// plus adds two durations that are not negative, up to Never.
func plus(a, b time.Duration) time.Duration {
	if a > Never-b {
		return Never
	}
	return a + b
}
