//go:build linux && (amd64 || arm64)

package shm

import (
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// shortest is the shortest time slice that Linux gives (sched_setattr(2), from 6.12 on).
const shortest = 100 * time.Microsecond

// A yield gives up what is left of a time slice, and counts as if it had been used. So a
// thread that yields every microsecond, with slices of 3 ms, soon has used more than its
// share, and whatever else there is to run gets the processor: what is of the idle class
// too, which else gets next to nothing, and then for a slice of its own. With slices of
// 100 µs that happens so much less often. Its share of the processor a thread keeps; it is
// only cut finer.

// sliced is done once a process has found that it shares processors.
var sliced sync.Once

// slice has all threads of the process take their turns in short slices: which of them
// will wait is not known. Those that come later have it from those that make them.
func slice() {
	sliced.Do(func() {
		done := make(map[string]bool)
		for more := true; more; {
			more = false
			threads, err := os.ReadDir("/proc/self/task")
			if err != nil {
				return // a process that does not see itself goes without
			}
			for _, t := range threads {
				if tid, err := strconv.Atoi(t.Name()); err == nil && !done[t.Name()] {
					done[t.Name()], more = true, true // one that was made meanwhile may have it from nobody
					shorten(tid)
				}
			}
		}
	})
}

// shorten gives a thread short slices, as far as the system can. Who has chosen a policy
// of its own knows why.
func shorten(tid int) {
	attr, err := unix.SchedGetAttr(tid, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL && attr.Policy != unix.SCHED_BATCH {
		return
	}
	attr.Runtime = uint64(shortest)
	_ = unix.SchedSetAttr(tid, attr, 0) // else they stay as long as they are
}
