//go:build linux && (amd64 || arm64)

package shm

import (
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// attributes are those of a thread.
func attributes(t *testing.T, tid int) unix.SchedAttr {
	t.Helper()
	attr, err := unix.SchedGetAttr(tid, 0)
	if err != nil {
		t.Skip("the system does not tell: ", err)
	}
	return *attr
}

// with gives the calling thread a policy. It is never unlocked, and ends with the test.
func with(t *testing.T, policy uint32) (tid int) {
	t.Helper()
	runtime.LockOSThread()
	attr := attributes(t, 0)
	attr.Policy, attr.Runtime = policy, 0
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
		t.Skip("may not choose a policy: ", err)
	}
	return unix.Gettid()
}

// Slices are all that changes.
func TestShorten(t *testing.T) {
	t.Parallel()
	for _, policy := range []uint32{unix.SCHED_NORMAL, unix.SCHED_BATCH} {
		t.Run("", func(t *testing.T) {
			tid := with(t, policy)
			before := attributes(t, tid)
			if before.Runtime == 0 {
				t.Skip("the system has no slices of a thread's own")
			}
			shorten(tid)
			after := attributes(t, tid)
			if after.Runtime != uint64(shortest) {
				t.Errorf("slices of %d ns", after.Runtime)
			}
			if after.Runtime = before.Runtime; after != before {
				t.Errorf("was %+v, is %+v", before, after)
			}
		})
	}
}

func TestShortenLeavesOthers(t *testing.T) {
	t.Parallel()
	tid := with(t, unix.SCHED_IDLE)
	before := attributes(t, tid)
	if shorten(tid); attributes(t, tid) != before {
		t.Errorf("was %+v, is %+v", before, attributes(t, tid))
	}
	shorten(1 << 30) // there is none
}

// All threads that there are have them.
func TestSlice(t *testing.T) {
	tid := with(t, unix.SCHED_NORMAL)
	if attributes(t, tid).Runtime == 0 {
		t.Skip("the system has no slices of a thread's own")
	}
	sliced = sync.Once{}
	slice()
	if got := attributes(t, tid).Runtime; got != uint64(shortest) {
		t.Errorf("slices of %d ns", got)
	}
	slice() // once is enough
}
