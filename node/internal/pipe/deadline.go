package pipe

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Deadline is one direction's deadline of a stream. The zero value has not been
// set. Its methods may be called at the same time.
type Deadline struct {
	past atomic.Bool // whether done is closed: cheap to ask

	mu    sync.Mutex
	timer *time.Timer
	done  chan struct{} // closed when the deadline passes
}

// Set replaces the deadline; the zero time lifts it. One that has passed frees
// those who wait at once.
func (d *Deadline) Set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.done // it has fired, and is just closing this
	}
	d.timer = nil
	if d.done == nil || d.past.Load() {
		d.past.Store(false)
		d.done = make(chan struct{})
	}
	if t.IsZero() {
		return
	}
	done := d.done
	if left := time.Until(t); left > 0 {
		d.timer = time.AfterFunc(left, func() { d.pass(done) })
	} else {
		d.pass(done)
	}
}

func (d *Deadline) pass(done chan struct{}) {
	d.past.Store(true)
	close(done)
}

// Passed reports whether the deadline is over.
func (d *Deadline) Passed() bool { return d.past.Load() }

// Wait gives a channel that is closed when the deadline passes. It is good for
// one wait: after a later Set it may be another.
func (d *Deadline) Wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done == nil {
		d.done = make(chan struct{})
	}
	return d.done
}

// A Signal wakes one waiter. A Raise that nobody waits for is kept, once.
type Signal chan struct{}

// NewSignal makes one.
func NewSignal() Signal { return make(Signal, 1) }

// Raise wakes the waiter, or the next one.
func (s Signal) Raise() {
	select {
	case s <- struct{}{}:
	default:
	}
}
