package mesh

import (
	"context"
	"sync"
	"time"
)

const (
	// crowded is how many peers, if they share a machine, take twice as long as a few.
	crowded = 64
	// paceMost bounds a meeting, however long others have taken.
	paceMost = time.Minute
	// pacePatience is by how much a meeting may take longer than those before.
	pacePatience = 4
)

// A pace learns how long meetings may take. Where a machine runs more peers than it has
// the processors for, all are slow at once. Peers that gave each other up then, and cut
// their connections, would only make more work of the same kind, and might never meet.
// Like a pulse's, the estimate rises at once and falls slowly; only meetings that went
// well count, so that the dead do not make it longer.
type pace struct {
	size int // of the world

	mu   sync.Mutex
	slow time.Duration
}

// took takes into account how long a meeting took.
func (p *pace) took(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow = max(d, p.slow-p.slow/16)
}

// timeout bounds the next meeting.
func (p *pace) timeout() time.Duration { return p.patient(meetTimeout) }

// patient stretches a time that suits a few peers which are not slow, for whatever takes
// no longer than a meeting does.
func (p *pace) patient(d time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return min(max(crowd(d, p.size), pacePatience*p.slow), paceMost)
}

// crowd stretches a time that suits a few peers for as many as may share a machine.
func crowd(d time.Duration, size int) time.Duration {
	return d + d*time.Duration(size)/crowded
}

// within is a context for what ought to take d of the time that the world's ticks have
// come in (see watch): a process that does not get to run has not waited. It ends after
// paceMost even if none comes.
func (w *World) within(d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(w.ctx)
	before := w.stolen.Load()
	w.tasks.start(func() {
		defer cancel()
		for end, most := w.clock()+d, w.clock()+max(d, paceMost); ; {
			timer := time.NewTimer(end - w.clock())
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
			stolen := w.stolen.Load()
			next := min(end+time.Duration(stolen-before), most)
			if next <= w.clock() {
				return
			}
			end, before = next, stolen
		}
	})
	return ctx, cancel
}

// clock is the time since the world began.
func (w *World) clock() time.Duration { return time.Since(w.start) }
