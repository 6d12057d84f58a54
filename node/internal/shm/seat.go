//go:build linux && (amd64 || arm64)

package shm

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// sharings are the waits in a row after which a shared seat is left.
	sharings = 16
	// firstMove and lastMove bound the time between two moves of a process: it doubles
	// with each that was of no use.
	firstMove = time.Millisecond
	lastMove  = 10 * time.Second
)

// connected counts the process's connections, and so the peers it may have to wait for.
var connected atomic.Int32

// roomy reports whether there may be a processor for this process and each of them.
func roomy() bool { return int(connected.Load()) < runtime.NumCPU() }

// A seat is where a side of a connection waits: on which processor.
//
// Of two processes on one processor that wait for each other in turn, each must yield to
// the other. Neither ever waits for long enough to be moved by the system, which takes
// what has not run for half a millisecond: so one side moves itself. If there is no
// better place, it soon shares again, and moves ever less often.
type seat struct {
	mine, theirs *atomic.Uint32 // the processor of who waited last, from 1 on; shared memory
	moves        bool           // of the two sides one does
	within       bool           // both sides are in this process
	shared       atomic.Int32   // waits in a row
	alone        atomic.Int32   // waits since the last move that were not
}

// within reports whether the other end of a socket is in this process.
func within(socket syscall.RawConn) bool {
	var peer *unix.Ucred
	err := socket.Control(func(fd uintptr) { peer, _ = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	return err == nil && peer != nil && int(peer.Pid) == os.Getpid()
}

// take tells the other side where this one waits, and reports whether that is where
// the other last waited.
func (s *seat) take() (shared bool) {
	at := processor()
	if s.mine.Load() != at {
		s.mine.Store(at)
	}
	if s.theirs.Load() != at {
		s.shared.Store(0)
		s.alone.Add(1)
		return false
	}
	if n := s.shared.Add(1); s.moves && n >= sharings && move(s.alone.Load() > sharings) {
		s.shared.Store(0)
		s.alone.Store(0)
	}
	return true
}

// processor is the processor of this thread, from 1 on, or 0 where that is unknown.
func processor() uint32 {
	var at uint32
	if _, _, err := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&at)), 0, 0); err != 0 {
		return 0
	}
	return at + 1
}

// moved says when this process may move again.
var moved struct {
	sync.Mutex
	next time.Time
	wait time.Duration
}

// move has the system put this thread on another processor, unless it did so just
// now. helped says that the last move was of use.
func move(helped bool) bool {
	moved.Lock()
	defer moved.Unlock()
	now := time.Now()
	if now.Before(moved.next) {
		return false
	}
	if helped {
		moved.wait = 0
	}
	moved.wait = min(max(2*moved.wait, firstMove), lastMove)
	moved.next = now.Add(moved.wait)

	runtime.LockOSThread() // so that no other thread is made while this one is bound
	defer runtime.UnlockOSThread()
	var all unix.CPUSet
	if unix.SchedGetaffinity(0, &all) != nil {
		return true
	}
	others := all
	others.Clear(int(processor()) - 1)
	if others.Count() > 0 && unix.SchedSetaffinity(0, &others) == nil {
		_ = unix.SchedSetaffinity(0, &all) // was allowed before
	}
	return true
}
