package mesh

import (
	"fmt"
	"time"
)

// busiest bounds the lateness of our own ticks that counts for others.
const busiest = time.Second

// watch looks for ranks that have fallen silent.
//
// A process that was stopped for a while (SIGSTOP, a laptop's sleep, a full
// machine) must not take the others for dead when it wakes up: it has not
// listened. It knows by its own ticks, which came late as well, and does not count
// the time in which it did not run. And since what the others have sent may still
// lie unread, silence has to last for another tick before it counts. Ticks that come
// a little late say that this machine is busy; so may be the others, often on the
// same one, and their silence is given as much more time as a late beat of theirs.
func (w *World) watch() {
	every := w.beat / 2
	tick := time.NewTicker(every)
	defer tick.Stop()
	last, busy := time.Now(), time.Duration(0)
	suspect := make([]bool, w.Size())
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		stolen := now.Sub(last) - every
		last = now
		w.stolen.Add(int64(max(stolen, 0)))
		busy = busier(busy, stolen)
		for _, l := range w.all() {
			if !l.isAttached() || isClosed(l.left) {
				continue
			}
			if stolen > every {
				l.excuse(stolen + every)
			}
			quiet := now.Sub(w.start) - time.Duration(l.heard.Load())
			if quiet <= w.quiet(l, busy) {
				suspect[l.rank] = false
				continue
			}
			if suspect[l.rank] {
				w.fault(l.rank, fmt.Errorf("%w for %s", ErrSilent, quiet.Round(time.Millisecond)))
				return
			}
			suspect[l.rank] = true
		}
	}
}

// busier takes a tick into account that came so late.
func busier(busy, late time.Duration) time.Duration {
	return max(min(late, busiest), busy-busy/16, 0)
}

// quiet is how long a rank may be silent, if this machine is busy enough for our own
// ticks to come so late.
func (w *World) quiet(l *link, busy time.Duration) time.Duration {
	if w.silence > 0 {
		return w.silence
	}
	return min(l.pulse.bound()+4*busy, quietMost)
}

// excuse takes a time in which we did not listen off a rank's silence.
func (l *link) excuse(d time.Duration) {
	was := l.heard.Load()
	l.heard.CompareAndSwap(was, min(was+int64(d), int64(time.Since(l.w.start))))
}
