//go:build linux && (amd64 || arm64)

package shm

import (
	"runtime"
	"sync/atomic"
	"time"

	"peermesh/node/internal/pipe"

	"golang.org/x/sys/unix"
)

const (
	// shortRounds are the first rounds of a spin, with nothing but a pause between two
	// looks: a microsecond, what a peer takes that is about to write.
	shortRounds = 24
	// stretch is how many more go between two looks at the clock.
	stretch = 64
	// patience bounds the rest of a spin, if the peer is on another processor and there
	// is one for every peer. It is what a sleep may cost on a machine with other work:
	// when both sides have slept once, a side with less patience than the other takes to
	// wake sleeps in its turn, and so they go on. With 50 µs they did, for most waits.
	patience = 400 * time.Microsecond
	// lenience bounds it where peers share processors. There a look is a yield, which lets
	// the machine's other processes run, the one that is waited for among them. It takes
	// nothing from those that have something to do, for they run for as long as they may;
	// to sleep does: the Go runtime goes to look for other work, wakes its monitor, which
	// then looks around every 20 µs for a millisecond, and the peer has a system call to
	// make and a thread to wake. So this is as long as the system lets others run, whole
	// time slices included.
	lenience = 4 * time.Millisecond
	// yielding bounds it where both are in one process, which a yield does not help.
	yielding = 200 * time.Microsecond
	// mostHalved bounds how often either is halved. After so many nothing is left, or else
	// every heartbeat that is heard would have its reader look for the next, where but one
	// waiter of a process may look.
	mostHalved = 6
	// bellTime is what a sleep costs at least: a wait that would have been over in all that
	// either allows, and as much again, had better not slept.
	bellTime = 100 * time.Microsecond
	// probe is how many sleeps pass before one more spin, of which probed is how often it is
	// halved.
	probe  = 64
	probed = 3
)

// spinning counts the process's waiters that spin. One processor is left to the
// others: as long as all have something to run the Go runtime hears no bells for
// milliseconds.
var spinning atomic.Int32

// A waiter waits for the other side to move an index or to change its flags: it
// looks for a while, then sleeps and asks for a bell.
//
// How long it looks follows from how it went: a wait that was short, in sleep or
// not, doubles the patience of the next, up to all, and a long one halves it, down to
// none. A stream that is idle thus stops costing anything.
type waiter struct {
	index, flags *atomic.Uint64 // the other side's
	asleep       *atomic.Uint32 // ours, in shared memory
	signal       pipe.Signal
	deadline     pipe.Deadline
	stirred      atomic.Bool // something on this side has changed
	seat         *seat
	halved       int // how often the patience of the next spin is
	slept        int // how often it has
}

// stir ends a wait, or the next one, because something on this side has changed.
func (w *waiter) stir() {
	w.stirred.Store(true)
	w.signal.Raise()
}

// changed reports whether there is reason to look again.
func (w *waiter) changed(index, flags uint64) bool {
	return w.index.Load() != index || w.flags.Load() != flags || w.stirred.Load()
}

// wait returns when index or flags are no longer what they were, when the waiter
// was stirred, when the deadline passes, or for no reason.
func (w *waiter) wait(index, flags uint64) {
	if w.spin(index, flags) {
		return
	}
	start := time.Now()
	w.asleep.Store(1)
	if !w.changed(index, flags) { // else the other side may not have seen the 1
		select {
		case <-w.signal:
		case <-w.deadline.Wait():
		}
	}
	w.asleep.Store(0)
	w.slept++
	switch {
	case time.Since(start) < w.seat.most()+bellTime:
		w.halved = max(w.halved-1, 0)
	case w.slept%probe == 0:
		w.halved = probed
	default:
		w.halved = min(w.halved+1, mostHalved)
	}
}

// spin looks for a while, and reports whether there was anything to see.
func (w *waiter) spin(index, flags uint64) bool {
	procs := runtime.GOMAXPROCS(0)
	if int(spinning.Add(1)) > max(1, procs-1) {
		spinning.Add(-1)
		return false
	}
	defer spinning.Add(-1)
	switch {
	case w.look(index, flags, shortRounds):
		w.seat.alone.Add(1)
	case w.halved == mostHalved || !w.watch(index, flags, procs):
		return false
	}
	w.halved = max(w.halved-1, 0)
	return true
}

// look looks that often, and reports whether there was anything to see.
func (w *waiter) look(index, flags uint64, rounds int) bool {
	for range rounds {
		if w.changed(index, flags) {
			return true
		}
		pause()
	}
	return false
}

// most is how long a wait may look that has not been disappointed.
func (s *seat) most() time.Duration {
	switch {
	case roomy():
		return patience
	case s.within:
		return yielding
	}
	return lenience
}

// watch looks for longer, in the way that fits the place. A yield lets the machine's other
// processes run and not the process's own goroutines, for which the Go runtime would wake
// a thread.
func (w *waiter) watch(index, flags uint64, procs int) bool {
	alone := roomy() && !w.seat.take()
	if !alone {
		slice()
	}
	bound := w.seat.most() >> w.halved
	for start := time.Now(); time.Since(start) < bound; {
		if alone {
			if w.look(index, flags, stretch) {
				return true
			}
		} else if unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0); w.changed(index, flags) {
			return true
		}
		if procs == 1 {
			hear()
			runtime.Gosched()
		}
	}
	return false
}
