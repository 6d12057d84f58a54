package ops

import (
	"sync"
	"time"
)

// A watch times operations that follow one another, by one timer for all of them:
// nearly every one has ended long before there is anything to do, so to begin and to
// end one costs no more than to note the time.
type watch struct {
	// due is told how long the operation has taken when it was last told to be, and
	// returns at what age of it to be told again. It is not called once the operation
	// has ended, nor while it ends.
	due func(age time.Duration) (next time.Duration)

	mu    sync.Mutex
	timer *time.Timer
	rings time.Time // zero: it does not
	busy  bool
	since time.Time
	next  time.Duration // age at which due is called
}

// begin starts the time of an operation, for due to be called at that age.
func (w *watch) begin(first time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy, w.since, w.next = true, now(), first
	if at := w.since.Add(first); w.rings.IsZero() || at.Before(w.rings) {
		w.set(at, first)
	} // or else it rings for an earlier one, and then sees
}

// end says that the operation has ended.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = false
}

// set has the timer ring. The lock is held.
func (w *watch) set(at time.Time, in time.Duration) {
	if w.rings = at; w.timer == nil {
		w.timer = time.AfterFunc(in, w.ring)
		return
	}
	w.timer.Reset(in)
}

func (w *watch) ring() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rings = (time.Time{}); !w.busy {
		return
	}
	at := now()
	age := at.Sub(w.since)
	if age >= w.next {
		w.next = max(w.due(age), age)
	}
	w.set(at.Add(w.next-age), w.next-age)
}
