//go:build linux && (amd64 || arm64)

package shm

import (
	"sync/atomic"
	"testing"
	"time"

	"peermesh/node/internal/pipe"
)

// newWaiter waits for index to change, which nobody but the test does.
func newWaiter() (w *waiter, index *atomic.Uint64) {
	w = &waiter{index: new(atomic.Uint64), flags: new(atomic.Uint64), asleep: new(atomic.Uint32), signal: pipe.NewSignal(),
		seat: &seat{mine: new(atomic.Uint32), theirs: new(atomic.Uint32)}}
	return w, w.index
}

// idly waits until a deadline that is far off for a waiter that looks.
func idly(w *waiter) {
	w.deadline.Set(time.Now().Add(10 * (lenience + bellTime)))
	w.wait(0, 0)
	w.deadline.Set(time.Time{})
}

// Whoever waits in vain looks less and less, in the end not at all, and after many sleeps
// tries again. Whoever is woken soon looks again, and longer each time.
func TestWaitLearns(t *testing.T) {
	w, _ := newWaiter()
	for i := range mostHalved + 2 {
		if w.halved != min(i, mostHalved) {
			t.Errorf("halved %d times after %d waits", w.halved, i)
		}
		idly(w)
	}
	w.seat.theirs.Store(processor()) // so that a look that is long would show
	w.seat.alone.Store(0)
	if w.spin(0, 0) || w.seat.shared.Load()+w.seat.alone.Load() != 0 {
		t.Error("looks for more than a moment")
	}
	for want := mostHalved - 1; want >= 0; want-- {
		w.signal.Raise()
		w.wait(0, 0)
		if w.halved != want {
			t.Errorf("halved %d times, want %d", w.halved, want)
		}
	}
	w.halved, w.slept = mostHalved, probe-1
	if idly(w); w.halved != probed {
		t.Errorf("halved %d times for a probe", w.halved)
	}
	if spinning.Load() != 0 {
		t.Errorf("%d look", spinning.Load())
	}
}

// A change that is there, or comes while one looks, ends the wait without a sleep.
func TestWaitSees(t *testing.T) {
	for _, crowd := range []int32{0, 1 << 10} { // alone on a processor, and one of many
		connected.Add(crowd)
		w, index := newWaiter()
		w.halved = 1
		index.Store(1)
		if w.wait(0, 0); w.slept != 0 || w.halved != 0 {
			t.Errorf("crowd %d: slept %d times, halved %d", crowd, w.slept, w.halved)
		}
		go index.Store(2) // or it is woken by nobody, and the test ends by its own deadline
		for index.Load() != 2 {
			w.deadline.Set(time.Now().Add(time.Second))
			w.wait(1, 0)
		}
		w.deadline.Set(time.Time{})
		if w.asleep.Load() != 0 {
			t.Error("left word that it sleeps")
		}
		connected.Add(-crowd)
	}
}

// Only one waiter of a process of few processors looks; the others sleep at once.
func TestWaitInTurn(t *testing.T) {
	w, index := newWaiter()
	spinning.Add(1 << 10)
	defer spinning.Add(-1 << 10)
	if index.Store(1); w.spin(0, 0) {
		t.Error("looked beside many others")
	}
}

// How long a waiter looks is for the place to say.
func TestMost(t *testing.T) {
	var s seat
	if roomy() && s.most() != patience {
		t.Errorf("%v where there is room", s.most())
	}
	connected.Add(1 << 10)
	defer connected.Add(-1 << 10)
	if s.most() != lenience {
		t.Errorf("%v in a crowd", s.most())
	}
	if s.within = true; s.most() != yielding {
		t.Errorf("%v within a process", s.most())
	}
	if c, d := conns(t); !c.seat.within || !d.seat.within {
		t.Error("the ends do not know that they are in one process")
	}
	if c, _ := startChild(t, "sink").dial(t); c.seat.within {
		t.Error("another process taken for this one")
	}
}
