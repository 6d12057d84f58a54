package ops

import (
	"slices"
	"time"

	"peermesh/ops/schedule"
)

// What ranks of one host cost each other.
//
// Links between hosts are independent: what goes over one does not slow another. Ranks of
// one host have the same processors, and each byte that goes between them is work for
// these: the sender copies it in, and the receiver out. So to a schedule's span, which is
// the longest chain of its messages as package schedule prices it, comes its work, all
// copying and all overhead of a host's ranks, divided by the processors they have:
//
//	span + work / processors
//
// A greedy scheduler, under which no processor rests while a rank could go on, takes no
// longer (R. P. Brent, "The Parallel Evaluation of General Arithmetic Expressions", 1974;
// R. L. Graham, "Bounds for Certain Multiprocessing Anomalies", 1966) and at least half of
// it. For four ranks on two processors of a busy machine most prices were within a factor of
// two of what was measured, and some within three: they rank schedules, and foretell no
// times. A message is as in LogGP
// (Alexandrov, Ionescu, Schauser, Scheiman, 1995): a latency that is nobody's work, an
// overhead and a gap for each byte that are work of both its ends.
//
// Where every rank has a processor to itself nothing is shared, and none is done before
// its own work is.
const (
	// handOver is how long a message takes to a rank that shares its processors: it has
	// to get one, and those that have one are looking for messages too. Two hand-overs of
	// 5 µs are the least. This figure, and copyRate, were chosen such that prices fit a
	// few measurements of four ranks on two processors, with other work on them.
	handOver = 40 * time.Microsecond
	// yielding is the overhead there: one hand-over (node's package shm).
	yielding = 5 * time.Microsecond
	// atOnce is both for a rank that has a processor to itself.
	atOnce = time.Microsecond
	// copyRate is how many bytes a processor copies in a second, one way.
	copyRate = 8e9
)

// Shared is what Located links are as well when they know what processors the ranks of a
// host have. It is the same on every rank.
type Shared interface {
	Located
	// Share is how many processors a rank has while all ranks of its host are at work, less
	// than 1 where they share one: 1 if nothing is known.
	Share(rank int) float64
}

// sharesOf are the shares of ranks on hosts, of which each knows its processors and has a
// number for which they are; nil if nobody does. Those that have the same share them, and
// those with others, as ranks are that were bound to one each, do not. Sets that overlap
// are taken for apart.
func sharesOf(n int, host func(rank int) int64, cores func(rank int) (n, set int)) (shares []float64) {
	type place struct {
		host int64
		set  int
	}
	ranks, procs := make(map[place]int), make(map[place]int)
	at := make([]place, n)
	for r := range n {
		have, set := cores(r)
		at[r] = place{host(r), set}
		ranks[at[r]]++
		procs[at[r]] = max(procs[at[r]], have)
	}
	shares = make([]float64, n)
	known := false
	for r, p := range at {
		shares[r] = 1
		if p.host != 0 && procs[p] > 0 {
			known, shares[r] = true, float64(procs[p])/float64(ranks[p])
		}
	}
	if !known {
		return nil
	}
	return shares
}

// share finds out which ranks share processors.
func (p *pricer) share(l Shared) {
	first := make(map[int64]int)
	p.host, p.cores, p.busy = make([]int, p.n), make([]float64, p.n), make([]time.Duration, p.n)
	for r := range p.n {
		h := l.Host(r)
		p.host[r] = r
		if f, ok := first[h]; ok && h != 0 {
			p.host[r] = f
		} else {
			first[h] = r
		}
		p.cores[p.host[r]] += min(l.Share(r), 1)
	}
}

// near reports whether a message stays on a host of which the processors are known.
func (p *pricer) near(m schedule.Move) bool { return p.host != nil && p.host[m.From] == p.host[m.To] }

// copy counts a move's bytes as work of both ends.
func (p *pricer) copy(s schedule.Schedule, m schedule.Move) {
	if p.near(m) {
		p.toil(m, p.occupied(s, m))
	}
}

// hold counts once more what a rank has to hold back: of a chunk that several others fold
// into in one round.
func (p *pricer) hold(s schedule.Schedule, round schedule.Round) {
	if p.host == nil {
		return
	}
	type place struct{ rank, chunk int }
	landings := make(map[place]int)
	for _, m := range round {
		if m.Reduce {
			landings[place{m.To, m.Dst}]++
		}
	}
	for _, m := range round {
		if landings[place{m.To, m.Dst}] > 1 && p.near(m) {
			p.busy[m.To] = sum(p.busy[m.To], p.occupied(s, m))
		}
	}
}

// occupied is how long the bytes of a move take.
func (p *pricer) occupied(s schedule.Schedule, m schedule.Move) time.Duration {
	ns := float64(p.bytes) * float64(m.N) / float64(s.Chunks) / p.l.Rate(m.From, m.To) * 1e9
	if !(ns < float64(maxLatency)) {
		return maxLatency
	}
	return time.Duration(ns)
}

// toil is work of both ends of a message on a host.
func (p *pricer) toil(m schedule.Move, d time.Duration) {
	if p.near(m) {
		p.busy[m.From] = sum(p.busy[m.From], d)
		p.busy[m.To] = sum(p.busy[m.To], d)
	}
}

// overhead is what a message costs each of its ends besides latency and bytes.
func (p *pricer) overhead(m schedule.Move, way time.Duration) time.Duration {
	if p.near(m) {
		return min(yielding, way)
	}
	return min(messageCost, way)
}

// crowd is what a schedule of that span takes on the processors that there are.
func (p *pricer) crowd(span time.Duration) time.Duration {
	if p.host == nil {
		return span
	}
	work, ranks := make([]time.Duration, p.n), make([]float64, p.n)
	for r, h := range p.host {
		work[h] = sum(work[h], p.busy[r])
		ranks[h]++
	}
	var most time.Duration
	for h, w := range work {
		if p.cores[h] < ranks[h] {
			most = max(most, time.Duration(min(float64(w)/max(p.cores[h], minShare), float64(maxLatency))))
		}
	}
	return max(sum(span, most), slices.Max(p.busy))
}

// maxCores bounds what is believed of a host's processors, and minShare is the least that ranks
// are taken to have of them.
const (
	maxCores = 1 << 16
	minShare = 1.0 / 1024
)

// sum adds two durations that are not negative, up to schedule.Never.
func sum(a, b time.Duration) time.Duration { return a + min(b, schedule.Never-a) }
