package ops

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// How ranks that disagree are found.
//
// Every message carries its call, so a rank that gets one for another call than
// its own knows at once. But ranks that disagree may also all wait: one for the
// contributions of a reduce, the others for the data of a broadcast, and no
// message ever flows. So a rank that has waited a moment for another asks it:
// it signals the call that it is in. The other compares that with its own call
// of the same number, or keeps the question until it issues one.
//
// This finds every disagreement. A rank that waits, waits for some rank that is
// in another call, or for one that is in the same and itself waits; a schedule
// has no cycles, so the chain ends at a rank that is in another call or has
// not arrived.
//
// Whoever finds out tells every rank, then cancels its own part. A rank that is
// still busy with an earlier call finishes that first: its data is there.
// Signals may be lost; the questions are repeated, and a group that has failed
// answers each with its failure.

const (
	// history is how many of its own calls a rank remembers to compare.
	history = 256
	// askFirst is how long a rank waits before it asks, askMost how long between
	// later questions.
	askFirst = 50 * time.Millisecond
	askMost  = time.Second
	// explain is how long a rank whose lane broke waits to be told why.
	explain = time.Second
)

type ledger struct {
	t       Transport
	ranks   ranks // in all that is said and kept, ranks are those of the world
	self    int
	channel uint32

	mu     sync.Mutex
	next   uint64
	calls  [history]Call
	asked  map[int]Call // the last question of each rank (here of the group) that came too early
	failed chan struct{}
	fail   *failure

	busy   bool // a call is being performed
	seq    uint64
	cancel context.CancelCauseFunc
	begun  uint64 // calls that this rank has come to
	roll   *roll  // of a monitored barrier whose time is up
}

func (l *ledger) init(t Transport, members ranks, channel uint32) {
	l.t, l.ranks, l.channel = t, members, channel
	if self := t.Rank(); self >= 0 {
		l.self = members.world(self)
	}
	l.asked = make(map[int]Call)
	l.failed = make(chan struct{})
}

// issue numbers a call.
func (l *ledger) issue(c Call) uint64 {
	l.mu.Lock()
	c.Seq = l.next
	l.next++
	l.calls[c.Seq%history] = c
	var f *failure
	for rank, theirs := range l.asked {
		if theirs.Seq > c.Seq {
			continue
		}
		if theirs.Seq == c.Seq && !theirs.agrees(c) && f == nil {
			f = disagree(c.Seq, l.ranks.world(rank), theirs, l.self, c)
		}
		delete(l.asked, rank)
	}
	l.mu.Unlock()
	if f != nil {
		l.spread(f)
	}
	return c.Seq
}

func (l *ledger) lookup(seq uint64) (Call, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.called(seq)
}

// called is this rank's call of a number, if it is still known. The lock is held.
func (l *ledger) called(seq uint64) (Call, bool) {
	if seq >= l.next || seq+history < l.next {
		return Call{}, false
	}
	return l.calls[seq%history], true
}

// begin says that a call is about to move data, and cancel ends it.
func (l *ledger) begin(c Call, cancel context.CancelCauseFunc) error {
	if err := context.Cause(l.t.Context()); err != nil {
		return fmt.Errorf("ops: %v: %w", c, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil && c.Seq >= l.fail.at {
		return l.verdict(c)
	}
	l.busy, l.seq, l.cancel, l.begun = true, c.Seq, cancel, c.Seq+1
	return nil
}

// end says that a call has ended, and turns what it ended with into the error
// that every rank should see. broke says that it ended of itself, and not because
// its context did.
func (l *ledger) end(c Call, broke bool, err error) error {
	if err != nil {
		err = l.judge(c, broke, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy, l.cancel = false, nil
	return err
}

func (l *ledger) judge(c Call, broke bool, err error) error {
	world := l.t.Context()
	var stray *strayError
	var bad *badCall
	switch {
	case errors.As(err, &bad): // we are the one to say why
	case errors.As(err, &stray):
		theirs, ours := stray.theirs, stray.ours
		if theirs == ours {
			break // the same call and yet another message: a broken peer
		}
		at := c.Seq
		if earlier, ok := l.lookup(theirs.Seq); ok && theirs.Seq < at && !earlier.agrees(theirs) {
			at, ours = theirs.Seq, earlier // it is left over from a call that we thought done
		}
		l.spread(disagree(at, l.ranks.world(stray.from), theirs, l.self, ours))
	case broke:
		// A lane broke. The rank that broke it, or whoever saw it die, says why.
		timer := time.NewTimer(explain)
		defer timer.Stop()
		select {
		case <-l.failed:
		case <-world.Done():
		case <-timer.C:
		}
	}
	if cause := context.Cause(world); cause != nil {
		return fmt.Errorf("ops: %v: %w", c, cause)
	}
	l.mu.Lock()
	if l.fail != nil && l.fail.at <= c.Seq {
		defer l.mu.Unlock()
		return l.verdict(c)
	}
	l.mu.Unlock()
	l.spread(&failure{at: c.Seq, abort: &AbortedError{Rank: l.self, Call: c, Reason: err.Error()}})
	if bad != nil {
		return err
	}
	return fmt.Errorf("ops: %v: %w", c, err)
}

// verdict is the failure as this rank's error. The lock is held.
func (l *ledger) verdict(c Call) error {
	if ours, ok := l.called(l.fail.at); ok {
		c = ours
	}
	return l.fail.error(l.self, c)
}

// spread makes a failure known, to all ranks first, then to the call at work.
func (l *ledger) spread(f *failure) {
	if !l.record(f) {
		return
	}
	p := f.encode(l.ranks)
	for rank := range l.t.Size() {
		if rank != l.t.Rank() {
			_ = l.t.Signal(rank, l.channel, p) // lost: it asks, and is answered
		}
	}
	l.stop(f)
}

// record keeps a failure, if none of the same or an earlier call is known.
func (l *ledger) record(f *failure) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil && l.fail.at <= f.at {
		return false
	}
	if l.fail == nil {
		close(l.failed)
	}
	l.fail = f
	return true
}

func (l *ledger) stop(f *failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy && l.seq >= f.at {
		l.cancel(f)
	}
}

// hear takes a question, an answer or a failure.
func (l *ledger) hear(from int, s signal) {
	switch s.kind {
	case signalHere:
		l.present(from, s.call.Seq)
	case signalAsk, signalRoll:
		l.onAsk(from, s.kind, s.call)
	default:
		if l.record(s.fail) {
			l.stop(s.fail)
		}
	}
}

func (l *ledger) onAsk(from int, kind byte, theirs Call) {
	l.mu.Lock()
	fail := l.fail
	ours, known := l.called(theirs.Seq)
	if !known && theirs.Seq >= l.next {
		l.asked[from] = theirs
	}
	here := theirs.Seq < l.begun
	l.mu.Unlock()
	switch {
	case fail != nil:
		_ = l.t.Signal(from, l.channel, fail.encode(l.ranks)) // lost: asked again
	case known && !ours.agrees(theirs):
		l.spread(disagree(theirs.Seq, l.ranks.world(from), theirs, l.self, ours))
	case kind == signalRoll && here:
		_ = l.t.Signal(from, l.channel, encodeCall(signalHere, theirs)) // lost: asked again
	}
}
