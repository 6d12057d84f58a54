package ops

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"peermesh/ops/tensor"
)

const (
	// inline is how many bytes a rank may send to one peer in a round before it receives
	// in that round: less than the window of any lane, so that the send cannot wait for a
	// receive. No earlier message is in the way: the rank that is least far has all but
	// those of its own round.
	inline = 64 << 10
	// inlineMost is how many it may be where a lane is known to take them. Of more it is
	// worth to receive the first before the last is sent.
	inlineMost = 512 << 10
)

// A run is one rank's part of one collective: the rounds of a schedule over a
// tensor, on every lane at once.
//
// Most collectives change one tensor in place: what a move lands on, a later move
// may send on. Where nothing is sent on, a run may read from one tensor and land
// in another.
type run struct {
	*crew
	call   Call
	rounds []round
	first  int                             // number of the first of them in the call
	src    layout                          // where moves read
	dst    layout                          // where they land
	apart  bool                            // src and dst share no memory
	before func(ctx context.Context) error // what comes before the rounds; nil: nothing
	op     tensor.Op
}

// over has the run read and land in one place.
func (r *run) over(l layout) { r.src, r.dst, r.apart = l, l, false }

// across has the run read in one place and land in another.
func (r *run) across(src, dst layout) { r.src, r.dst, r.apart = src, dst, true }

// A crew carries out the collectives of a group, one at a time. It keeps what each
// would otherwise make anew, so that one that is small allocates nothing.
type crew struct {
	t     Transport
	ranks ranks // for errors
	id    uint32
	bound bound
	lanes []*lane

	// Of the run at work:
	run   *run
	ctx   context.Context
	call  Call
	waits []atomic.Int32 // receives that wait, by rank
	wait  time.Duration  // how long until the next question to them
	asks  time.Duration  // at what age of the run that is

	mu     sync.Mutex
	failed error // the first of several lanes' or messages' errors
	broke  bool  // the context had not ended by then
}

func (c *crew) init(t Transport, members ranks, id uint32, timeout time.Duration) {
	c.t, c.ranks, c.id = t, members, id
	c.waits = make([]atomic.Int32, t.Size())
	c.bound.timeout, c.bound.watch.due = timeout, c.due
}

// begin returns the context of a call, and watches over it until end.
func (c *crew) begin(parent context.Context, call Call) context.Context {
	c.call, c.wait, c.asks = call, askFirst, askFirst
	return c.bound.begin(parent, askFirst)
}

func (c *crew) end() { c.bound.end() }

// due asks the ranks that a call has waited for, ever less often; see ledger.go. It
// ends the call when its time is up.
func (c *crew) due(age time.Duration) time.Duration {
	if age >= c.asks {
		for rank := range c.waits {
			if c.waits[rank].Load() > 0 {
				_ = c.t.Signal(rank, c.id, encodeCall(signalAsk, c.call)) // lost: asked again
			}
		}
		c.wait = min(2*c.wait, askMost)
		c.asks = age + c.wait
	}
	return min(c.asks, c.bound.expire(age))
}

// lane is the transport's name for lane i.
func (c *crew) lane(i int) uint64 { return uint64(c.id)<<32 | uint64(i) }

// do runs the lanes side by side. The first that fails takes the others along. broke
// tells a failure of the transport from one of the context.
func (c *crew) do(ctx context.Context, r *run) (broke bool, err error) {
	c.run, c.ctx, c.failed, c.broke = r, ctx, nil, false
	for len(c.lanes) < r.dst.lanes {
		c.lanes = append(c.lanes, newLane(c, len(c.lanes)))
	}
	if r.before != nil {
		c.fail(r.before(ctx))
	}
	if c.failed == nil {
		c.ply(c.lanes[:r.dst.lanes])
	}
	c.run, c.ctx = nil, nil
	return c.broke, c.failed
}

// ply goes through the lanes: side by side, or one after the other if all are known to
// take what they carry, as those in memory are. To wake a thread for one would then take
// longer than it is of use, while on a far link it saves a round trip. Other ranks
// may do otherwise: only within a lane is there an order.
func (c *crew) ply(lanes []*lane) {
	if len(lanes) > 1 && !slices.ContainsFunc(lanes, (*lane).heavy) {
		for i := 0; i < len(lanes) && c.failed == nil; i++ {
			c.fail(lanes[i].rounds())
		}
		return
	}
	for _, l := range lanes[1:] {
		l.ended.Add(1)
		go l.start()
	}
	c.fail(lanes[0].rounds())
	for _, l := range lanes[1:] {
		l.ended.Wait()
	}
}

// fail keeps the first error, and ends the context for what is still at work.
func (c *crew) fail(err error) {
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed, c.broke = err, c.ctx.Err() == nil
		c.bound.cancel(err)
	}
}

// A lane goes through the rounds in order, which is what lets a message's tag be
// compared with the only possible one. Lanes of a run are side by side: one reduces
// while another sends.
type lane struct {
	*crew
	i     int
	start func() // rounds, on a goroutine of its own
	ended sync.WaitGroup

	out, in courier    // of what this goroutine carries itself
	busy    []*courier // of what others carry at the same time, at most a round's talks
	held    [][]byte   // by slot of the round; nil: not held
}

func newLane(c *crew, i int) *lane {
	l := &lane{crew: c, i: i}
	l.out.join(l)
	l.in.join(l)
	l.start = func() {
		defer l.ended.Done()
		l.fail(l.rounds())
	}
	return l
}

func (l *lane) rounds() error {
	for i := range l.run.rounds {
		if err := l.round(i, &l.run.rounds[i]); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
	}
	return nil
}

// round sends, receives and settles. What is small goes at once, one message after
// the other; each that is not may have to wait, and so has a goroutine of its own if
// there is anything else to do. What comes in is folded as it arrives, unless a chunk
// that it lands on is still on its way out (every move reads the state from before the
// round) or gets more from others: then it lands at the end.
func (l *lane) round(i int, r *round) error {
	sending := false
	busy := l.busy[:0]
	for k := range r.talks { // those that send come first
		t := &r.talks[k]
		if l.small(t, sending) {
			continue
		}
		sending = sending || t.send
		if len(busy) == len(l.busy) {
			l.busy = append(l.busy, new(courier))
			l.busy[len(busy)].join(l)
		}
		busy = l.busy[:len(busy)+1]
		busy[len(busy)-1].take(i, t)
	}
	// Those that send come first, and are gone before anything comes, unless there are
	// goroutines.
	l.hold(r, len(busy) > 0 && r.talks[0].send && !l.run.apart)
	defer l.release()
	if err := l.together(i, r, busy); err != nil {
		return err
	}
	return l.settle(r)
}

// heavy reports whether the lane carries anything that needs a goroutine, or that it is
// not known to take.
func (l *lane) heavy() bool {
	return slices.ContainsFunc(l.run.rounds, func(r round) bool {
		return slices.ContainsFunc(r.talks, func(t talk) bool {
			return !l.small(&t, false) || t.send && l.size(&t) > ahead(l.t, t.peer, l.lane(l.i))
		})
	})
}

// small reports whether a talk needs no goroutine: what is sent, because it fits the
// lane, and what is received, because it is not long, or because nothing is under way
// that it could keep from leaving.
func (l *lane) small(t *talk, sending bool) bool {
	n := l.size(t)
	switch {
	case n <= inline:
		return true
	case n > inlineMost:
		return false
	case t.send:
		return n <= ahead(l.t, t.peer, l.lane(l.i))
	}
	return !sending
}

// together carries the talks that are busy side by side, and with them the others.
func (l *lane) together(i int, r *round, busy []*courier) error {
	switch {
	case len(busy) == 0:
		return l.one(i, r, nil)
	case len(busy) == 1 && len(r.talks) == 1:
		return busy[0].carry()
	}
	for _, c := range busy {
		c.ended.Add(1)
		go c.start()
	}
	l.fail(l.one(i, r, busy))
	for _, c := range busy {
		c.ended.Wait()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// one carries the talks that are not busy, one after the other.
func (l *lane) one(i int, r *round, busy []*courier) error {
	for k := range r.talks {
		t := &r.talks[k]
		if len(busy) > 0 && busy[0].talk == t {
			busy = busy[1:]
			continue
		}
		c := &l.in
		if t.send {
			c = &l.out
		}
		c.take(i, t)
		if err := c.carry(); err != nil {
			return err
		}
	}
	return nil
}

// size is the length of a lane's part of a talk, in bytes.
func (l *lane) size(t *talk) (n int64) {
	for i := range t.moves {
		m := &t.moves[i]
		if t.send {
			n += l.run.src.bytes(l.i, m.Src, m.N)
		} else {
			n += l.run.dst.bytes(l.i, m.Dst, m.N)
		}
	}
	return n
}

// A strayError is a message that is not the one expected: the ranks disagree.
type strayError struct {
	from         int
	ours, theirs Call
	n, want      int64
}

func (e *strayError) Error() string {
	return fmt.Sprintf("message of %d bytes for %v, %d bytes expected", e.n, e.theirs, e.want)
}
