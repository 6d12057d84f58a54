package mesh

import (
	"fmt"
	"time"
)

// watch looks for ranks that have fallen silent.
//
// A process that was stopped for a while (SIGSTOP, a laptop's sleep, a full
// machine) must not take the others for dead when it wakes up: it has not
// listened. It knows by its own ticks, which came late as well, and does not count
// the time in which it did not run. And since what the others have sent may still
// lie unread, silence has to last for another tick before it counts.
func (w *World) watch() {
	every := w.beat / 2
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := time.Now()
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
		for _, l := range w.links {
			if l == nil || !l.isAttached() || isClosed(l.left) {
				continue
			}
			if stolen > every {
				l.excuse(stolen + every)
			}
			quiet := now.Sub(w.start) - time.Duration(l.heard.Load())
			if quiet <= w.quiet(l) {
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

// quiet is how long a rank may be silent.
func (w *World) quiet(l *link) time.Duration {
	if w.silence > 0 {
		return w.silence
	}
	return l.pulse.bound()
}

// excuse takes a time in which we did not listen off a rank's silence.
func (l *link) excuse(d time.Duration) {
	was := l.heard.Load()
	l.heard.CompareAndSwap(was, min(was+int64(d), int64(time.Since(l.w.start))))
}
