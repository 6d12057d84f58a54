package ops

import (
	"context"
	"slices"
	"sync"
	"time"

	"peermesh/ops/tensor"
)

const (
	// rollEvery is how long a roll call waits before it is repeated to those who have
	// not answered, and rollTimes how often they are called: together less than the
	// second in which everyone is told.
	rollEvery = 50 * time.Millisecond
	rollTimes = 10
)

// MonitoredBarrier is a Barrier that says who is missing. When this rank has
// waited in it for the timeout and some rank has not come, every rank that has
// come gets a *MissingError that names it, within a second: all that are missing,
// or only the lowest when all is false. One that comes later gets the same.
//
// Whoever loses patience first decides for all. There is no rank that must be
// there for the others to learn who is not: each whose time is up calls the roll
// itself. A rank that comes during the roll call, of half a second, is in time.
//
// After a MissingError the group refuses further work with it, for its ranks have
// parted. The timeout counts from when the barrier's turn has come, after the
// collectives before; the group's own timeout, if shorter, ends it as any other.
func (g *Group) MonitoredBarrier(ctx context.Context, timeout time.Duration, all bool) *Work {
	if timeout <= 0 {
		return failed(argument(KindMonitoredBarrier, "timeout is %v: want a positive time", timeout))
	}
	if g.Rank() < 0 {
		return skipped()
	}
	p, err := g.plans.choose(KindBarrier, noRoot, 0)
	if err != nil {
		return failed(err)
	}
	t := g.task(KindMonitoredBarrier, p, tensor.Of([]uint8{}), tensor.Op{}, noRoot)
	if all {
		t.run.call.Count = 1
	}
	t.body = func(do func() error) error {
		var wg sync.WaitGroup
		defer wg.Wait()
		over := make(chan struct{})
		defer close(over)
		wg.Go(func() { g.ledger.monitor(t.run.call, timeout, over) })
		return do()
	}
	return g.issue(ctx, t)
}

// A roll is who has answered a roll call.
type roll struct {
	seq  uint64
	here []bool
	left int
	full chan struct{} // closed when all have
}

// monitor calls the roll when the time is up, unless the barrier is over before,
// and spreads who is missing.
func (l *ledger) monitor(c Call, timeout time.Duration, over <-chan struct{}) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-over:
		return
	case <-timer.C:
	}
	r := l.startRoll(c.Seq)
	tick := time.NewTicker(rollEvery)
	defer tick.Stop()
	for range rollTimes {
		for _, rank := range l.absent(r) {
			_ = l.t.Signal(rank, l.channel, encodeCall(signalRoll, c)) // lost: called again
		}
		select {
		case <-over:
			return
		case <-r.full: // so the barrier ends by itself
			return
		case <-tick.C:
		}
	}
	e := &MissingError{Call: c}
	for _, rank := range l.absent(r) {
		e.Ranks = append(e.Ranks, l.ranks.world(rank))
	}
	if len(e.Ranks) == 0 {
		return
	}
	slices.Sort(e.Ranks)
	if c.Count == 0 {
		e.Ranks = e.Ranks[:1]
	}
	l.spread(&failure{at: c.Seq, absent: e})
}

func (l *ledger) startRoll(seq uint64) *roll {
	r := &roll{seq: seq, here: make([]bool, l.t.Size()), left: l.t.Size() - 1, full: make(chan struct{})}
	r.here[l.t.Rank()] = true
	l.mu.Lock()
	defer l.mu.Unlock()
	l.roll = r
	return r
}

// present hears an answer.
func (l *ledger) present(from int, seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.roll
	if r == nil || r.seq != seq || r.here[from] {
		return
	}
	r.here[from] = true
	if r.left--; r.left == 0 {
		close(r.full)
	}
}

// absent are the ranks, here of the group, that have not answered.
func (l *ledger) absent(r *roll) (who []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rank, here := range r.here {
		if !here {
			who = append(who, rank)
		}
	}
	return who
}
