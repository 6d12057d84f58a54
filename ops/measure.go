package ops

import (
	"context"
	"fmt"
	"time"

	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
)

const (
	// pings are how many small messages go to and fro for the latency.
	pings = 5
	// firstBurst is how many bytes go to and fro for a first idea of the rate, and
	// maxBurst the most that go for a better one.
	firstBurst = 64 << 10
	maxBurst   = 4 << 20
	// burstTime is how long a burst that goes to and fro should take.
	burstTime = 20 * time.Millisecond
)

// Measure finds the latency and the rate between every two ranks, and has the group
// choose its schedules by them from then on, instead of by Config.Links. It is a
// collective: every rank calls it, and issues nothing else in the group until it
// returns. Groups that are made of the world's group afterwards go by the same figures.
//
// Each pair exchanges a few small messages and two bursts, of 64 KiB and of what takes
// about 20 ms to and fro, 4 MiB at most. A rank has one partner at a time, and as many
// in a row as there are other ranks. Then all ranks get the whole table, so that all
// choose alike. What else is at work on the links counts as part of them. The table also
// has the host that each rank is on, where the Transport has a method Host() string to say
// so, alike on all ranks of a host: then schedules of two levels go by that.
func (g *Group) Measure(ctx context.Context) error {
	n := g.Size()
	switch {
	case g.Rank() < 0 || n == 1:
		return nil
	case n > schedule.MaxRanks:
		return argument(KindMeasure, "%d ranks: at most %d", n, schedule.MaxRanks)
	}
	table := make([]int64, 2*n*n)
	p, err := g.plans.choose(KindAllGather, noRoot, 8*int64(len(table)))
	if err != nil {
		return err
	}
	t := g.task(KindMeasure, p, tensor.Of(table), tensor.Op{}, noRoot)
	partners := tournament(n, g.Rank())
	t.run.first = len(partners) // the rounds before are for measuring
	t.run.before = func(ctx context.Context) error {
		row, buf := table[2*n*g.Rank():], make([]byte, maxBurst)
		row[2*g.Rank()] = hostNumber(hostName(g.t)) // a rank has no link to itself
		row[2*g.Rank()+1] = sayCores(g.t)
		for round, peer := range partners {
			if peer < 0 {
				continue
			}
			pr := &probe{r: &t.run, round: round, peer: peer, buf: buf}
			if err := pr.measure(ctx, row[2*peer:2*peer+2]); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
		}
		return nil
	}
	if err := g.issue(ctx, t).Wait(); err != nil {
		return err
	}
	links := newMeasured(n, table)
	g.plans.relink(links)
	if g.ranks.list == nil {
		g.root.relink(links)
	}
	return nil
}

// tournament is a rank's partner in each round, −1 in one without, such that it meets
// every other once, and partners agree: the circle method of round robins.
func tournament(n, rank int) []int {
	rounds := n - 1 + n%2 // an odd one out meets nobody
	partners := make([]int, rounds)
	for i := range partners {
		peer := (2*i - rank + 2*rounds) % rounds
		switch {
		case n%2 == 1 && peer == rank:
			peer = -1
		case n%2 == 0 && rank == n-1:
			peer = i
		case n%2 == 0 && peer == rank:
			peer = n - 1
		}
		partners[i] = peer
	}
	return partners
}

// A probe is a rank's part in measuring one link. The lower rank sends and measures
// until what it sent comes back; the other sends back what comes.
type probe struct {
	r     *run
	round int
	peer  int
	buf   []byte // what bursts are made of, and maxBurst long
	sent  int    // messages
	got   int
}

// exchanges is how many times something goes to and fro: once to open the lane.
const exchanges = 1 + pings + 2

// measure writes the latency in nanoseconds and the rate in bytes per second.
func (p *probe) measure(ctx context.Context, figures []int64) error {
	if p.r.t.Rank() > p.peer {
		for range exchanges {
			n, err := p.recv(ctx)
			if err == nil {
				err = p.send(ctx, n)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	var rtt time.Duration // the shortest is the one that nothing held up
	for i := range 1 + pings {
		d, err := p.toAndFro(ctx, 1)
		if err != nil {
			return err
		}
		if i == 1 || i > 1 && d < rtt {
			rtt = d
		}
	}
	n := firstBurst
	d, err := p.toAndFro(ctx, n)
	if err != nil {
		return err
	}
	// A short burst says little of a fast link, and a long one takes too long on a slow
	// one; its own time says which this is.
	if better := min(int64(n)*int64(burstTime)/max(int64(d), 1), maxBurst); better > int64(n) {
		n = int(better)
	}
	if d, err = p.toAndFro(ctx, n); err != nil {
		return err
	}
	figures[0] = int64(rtt / 2)
	figures[1] = int64(float64(2*n) / max(d-rtt, time.Nanosecond).Seconds())
	return nil
}

func (p *probe) toAndFro(ctx context.Context, n int) (time.Duration, error) {
	start := time.Now()
	if err := p.send(ctx, n); err != nil {
		return 0, err
	}
	if _, err := p.recv(ctx); err != nil {
		return 0, err
	}
	return time.Since(start), nil
}

func (p *probe) send(ctx context.Context, n int) error {
	tag := p.r.call.tag(p.round, p.sent, 1)
	p.sent++
	err := p.r.t.Send(ctx, p.peer, p.r.lane(0), tag, int64(n), func(yield func([]byte, error) bool) { yield(p.buf[:n], nil) })
	if err != nil {
		return fmt.Errorf("to rank %d: %w", p.r.ranks.world(p.peer), err)
	}
	return nil
}

// recv takes the next message, of any length up to a burst's.
func (p *probe) recv(ctx context.Context) (int, error) {
	tag := p.r.call.tag(p.round, p.got, 1)
	p.got++
	p.r.waits[p.peer].Add(1)
	defer p.r.waits[p.peer].Add(-1)
	size := 0
	err := p.r.t.Recv(ctx, p.peer, p.r.lane(0), func(got Tag, n int64) error {
		if got != tag || n < 1 || n > maxBurst {
			return &strayError{from: p.peer, ours: callOf(tag[:]), theirs: callOf(got[:]), n: n, want: 1}
		}
		size = int(n)
		return nil
	}, func([]byte) error { return nil })
	if err != nil {
		return 0, fmt.Errorf("from rank %d: %w", p.r.ranks.world(p.peer), err)
	}
	return size, nil
}
