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
	// tightRounds are the first rounds of a spin, with nothing but a pause between
	// two looks: a few microseconds, what a peer takes that is at work.
	tightRounds = 64
	// maxRounds bounds a spin. After the tight rounds each lets the process's other
	// goroutines run and, every yieldEvery rounds, the machine's other processes:
	// some ten microseconds when there are none, the cost of a sleep and a bell.
	maxRounds  = tightRounds + 128
	minRounds  = 8
	yieldEvery = 4
	// worth is how long a wait may take that had better been spun: twice what a bell
	// takes, for at the other side there may have been one as well.
	worth = 80 * time.Microsecond
	// probe is how many sleeps pass before one more spin in full.
	probe = 64
)

// spinning counts the process's waiters that spin. One processor is left to the
// others: as long as all have something to run, and a spin that lets others run is
// something, the Go runtime hears no bells for milliseconds.
var spinning atomic.Int32

// A waiter waits for the other side to move an index or to change its flags: it
// looks for a while, then sleeps and asks for a bell.
//
// How long it looks follows from how it went: a wait that was short, in sleep or
// not, doubles the rounds of the next, and a long one halves them. A stream that is
// idle thus stops costing anything, and so does one whose peer shares the processor
// and cannot answer while it is watched.
type waiter struct {
	index, flags *atomic.Uint64 // the other side's
	asleep       *atomic.Uint32 // ours, in shared memory
	signal       pipe.Signal
	deadline     pipe.Deadline
	stirred      atomic.Bool // something on this side has changed
	rounds       int         // of the next spin
	slept        int         // how often it has
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
	case time.Since(start) < worth:
		w.rounds = min(2*w.rounds, maxRounds)
	case w.slept%probe == 0:
		w.rounds = maxRounds
	default:
		w.rounds = max(w.rounds/2, minRounds)
	}
}

func (w *waiter) spin(index, flags uint64) bool {
	procs := runtime.GOMAXPROCS(0)
	if int(spinning.Add(1)) > max(1, procs-1) {
		spinning.Add(-1)
		return false
	}
	defer spinning.Add(-1)
	for i := range w.rounds {
		if w.changed(index, flags) {
			w.rounds = min(2*w.rounds, maxRounds)
			return true
		}
		switch {
		case i < tightRounds && procs > 1:
			pause()
		case i%yieldEvery == 0:
			unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		default:
			runtime.Gosched()
		}
	}
	return false
}
