//go:build linux && (amd64 || arm64)

package shm

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// seats are the two sides' seats, both on the processor of the caller.
func seats(t *testing.T) (here, there *seat) {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	var one unix.CPUSet
	one.Set(int(processor()) - 1)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.SchedSetaffinity(0, &all) }) // was allowed before
	var a, b atomic.Uint32
	return &seat{mine: &a, theirs: &b}, &seat{mine: &b, theirs: &a, moves: true}
}

// A side finds that it shares once the other has waited at the same place.
func TestSeatShared(t *testing.T) {
	here, there := seats(t)
	if here.take() {
		t.Error("shared with a side that has not waited yet")
	}
	if !there.take() || !here.take() {
		t.Error("not shared")
	}
	there.mine.Store(1 << 31) // it may say what it likes
	if here.take() || here.shared.Load() != 0 || here.alone.Load() != 2 {
		t.Errorf("shared %d, alone %d", here.shared.Load(), here.alone.Load())
	}
}

// One side moves after some waits, not more often than it may, and may then run
// wherever it could before.
func TestSeatMoves(t *testing.T) {
	const long = lastMove / 4 // so that the next is not due within the test, however slow
	moved.next, moved.wait = time.Time{}, long
	here, there := seats(t)
	here.take()
	for range 3 * sharings {
		here.shared.Add(1) // stays: it is not the one to move
		there.take()
	}
	if moved.wait != 2*long || here.shared.Load() != 3*sharings || there.shared.Load() <= sharings {
		t.Errorf("moved with %v to wait, after %d and %d waits", moved.wait, here.shared.Load(), there.shared.Load())
	}
	var now unix.CPUSet
	if err := unix.SchedGetaffinity(0, &now); err != nil || now.Count() != 1 || !now.IsSet(int(processor())-1) {
		t.Errorf("may run on %d processors (%v)", now.Count(), err)
	}
}

// Moves that are of no use become rare, and one that was begins anew.
func TestSeatMovesEverLess(t *testing.T) {
	moved.next, moved.wait = time.Time{}, 0
	for i := range 40 {
		moved.next = time.Time{}
		if !move(false) {
			t.Fatal("did not move")
		}
		if want := min(firstMove<<min(i, 20), lastMove); moved.wait != want {
			t.Fatalf("move %d: %v to wait, want %v", i, moved.wait, want)
		}
	}
	if move(true) {
		t.Error("moved at once again")
	}
	moved.next = time.Time{}
	if move(true); moved.wait != firstMove {
		t.Errorf("%v to wait after a move that helped", moved.wait)
	}
}
