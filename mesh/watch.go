package mesh

import (
	"fmt"
	"time"
)

// watch looks for ranks that have fallen silent.
//
// A process that was stopped for a while (SIGSTOP, a laptop's sleep, a full
// machine) must not take the others for dead when it wakes up: it has not
// listened. It knows by its own ticks, which came late as well, and then starts
// its count anew.
func (w *World) watch() {
	every := min(w.silence/16, beatEvery/2)
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		late := now.Sub(last) > every+w.silence/4
		last = now
		for _, l := range w.links {
			if l == nil || !l.isAttached() || isClosed(l.left) {
				continue
			}
			if late {
				l.hear()
				continue
			}
			if quiet := now.Sub(w.start) - time.Duration(l.heard.Load()); quiet > w.silence {
				w.fault(l.rank, fmt.Errorf("%w for %s", ErrSilent, quiet.Round(time.Millisecond)))
				return
			}
		}
	}
}
