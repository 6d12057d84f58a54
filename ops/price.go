package ops

import (
	"cmp"
	"slices"
	"time"

	"peermesh/ops/schedule"
)

const (
	// messageCost is what a message costs each of its ends besides latency and bytes:
	// frames to seal and open, system calls, wake-ups. It is what speaks against
	// talking to everyone at once, and schedule.Price does not know of it. A link of
	// less latency than that, such as shared memory, has none of it: there it is as much
	// as the latency.
	messageCost = 30 * time.Microsecond
	// distant is the latency from which on a link takes a while to come up to speed.
	distant = 2500 * time.Microsecond
)

// A pricer says what schedules among n ranks are expected to take for that many bytes:
// schedule.Price, and what that does not know of.
//
// A rank that turns to another peer over a distant link finds one that has rested, and a
// congestion control that has to find its rate again, by way of a queue that it fills.
// On emulated links of 40 ms a turn was seen to cost several round trips (node's package
// tcp); on modelled ones, without congestion, nothing. It is counted as an eighth of the
// time that the message's bytes take, up to two round trips: enough to tell a ring, which
// turns once, from a halving that takes about the same otherwise, and too little to be far
// off anywhere. A cycle does not turn at all.
type pricer struct {
	n     int
	bytes int64
	l     schedule.Links
	least time.Duration // of all latencies

	host  []int           // by rank: the lowest rank that shares its processors
	cores []float64       // by such a lowest rank: processors that its ranks have between them
	busy  []time.Duration // by rank: its messages on its host, at either end
	costs []time.Duration // by rank, of its messages
	seen  []int           // by sender and receiver: the last round with a message
	peer  []int           // by rank: the last that it sent to, in the rounds before
	turn  []time.Duration // by rank: of its turn to another in this round
}

func newPricer(n int, bytes int64, l schedule.Links) *pricer {
	p := &pricer{
		n: n, bytes: bytes, l: l, least: maxLatency,
		costs: make([]time.Duration, n), seen: make([]int, n*n), peer: make([]int, n), turn: make([]time.Duration, n),
	}
	for a := range n {
		for b := range n {
			if a != b {
				p.least = min(p.least, max(l.Latency(a, b), 0))
			}
		}
	}
	if shared, ok := l.(Shared); ok {
		p.share(shared)
	}
	return p
}

// price is what a schedule is expected to take.
func (p *pricer) price(s schedule.Schedule) time.Duration {
	clear(p.costs)
	clear(p.busy)
	clear(p.seen)
	for r := range p.peer {
		p.peer[r] = r // nobody
	}
	var most time.Duration
	for i, round := range s.Rounds {
		p.hold(s, round)
		for _, m := range round {
			p.copy(s, m)
			if p.seen[m.From*p.n+m.To] == i+1 {
				continue // one message
			}
			p.seen[m.From*p.n+m.To] = i + 1
			way := p.l.Latency(m.From, m.To)
			cost := p.overhead(m, way)
			p.costs[m.From] += cost
			p.costs[m.To] += cost
			p.toil(m, cost)
			if was := p.peer[m.From]; way >= distant && was != m.From && was != m.To {
				p.turn[m.From] = max(p.turn[m.From], p.turning(s, m, way))
			}
		}
		for _, m := range round {
			p.costs[m.From] += p.turn[m.From]
			p.turn[m.From], p.peer[m.From] = 0, m.To
			most = max(most, p.costs[m.From], p.costs[m.To])
		}
	}
	wire := schedule.Price(s, int(p.bytes), p.l)
	return p.crowd(wire + min(most, schedule.Never-wire))
}

// turning is what it costs to begin with a message on a link that has rested.
func (p *pricer) turning(s schedule.Schedule, m schedule.Move, way time.Duration) time.Duration {
	most := 2 * 2 * min(way, maxLatency)
	ns := float64(p.bytes) * float64(m.N) / float64(s.Chunks) / p.l.Rate(m.From, m.To) * 1e9
	if ns < float64(8*most) {
		return time.Duration(ns) / 8
	}
	return most
}

// cheapest is the rules' schedule of the least price; of equal ones the first. Those that
// go through so many rounds that their latencies alone take longer are not even built.
func cheapest(all []rule, n, root int, bytes int64, l schedule.Links, where near) schedule.Schedule {
	if len(all) == 1 {
		return all[0].build(n, root, where)
	}
	p := newPricer(n, bytes, l)
	var best schedule.Schedule
	least := time.Duration(-1)
	for _, r := range all {
		if r.steps != nil && least >= 0 && time.Duration(r.steps(n)) > least/max(p.least, 1) {
			continue
		}
		s := r.build(n, root, where)
		if price := p.price(s); least < 0 || price < least {
			best, least = s, price
		}
	}
	return best
}

// priced are all rules' schedules, the cheapest first.
func priced(rules []rule, n, root int, bytes int64, l schedule.Links) []Candidate {
	var all []Candidate
	p, where := newPricer(n, bytes, l), nearby(n, l)
	for _, r := range rules {
		if r.allows(n) {
			s := r.build(n, root, where)
			all = append(all, Candidate{s, p.price(s), r.canonical(), r.named(bytes, where)})
		}
	}
	slices.SortStableFunc(all, func(a, b Candidate) int { return cmp.Compare(a.Price, b.Price) })
	return slices.CompactFunc(all, func(a, b Candidate) bool { // rules that come to the same
		return a.Schedule.Name == b.Schedule.Name && a.Schedule.Chunks == b.Schedule.Chunks
	})
}
