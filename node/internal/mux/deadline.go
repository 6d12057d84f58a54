package mux

import (
	"sync"
	"time"
)

// A deadline is a moment that a call waits for along with what it wants. It may be
// moved while calls wait.
type deadline struct {
	mu      sync.Mutex
	when    time.Time
	timer   *time.Timer
	expired chan struct{} // closed when the moment has come; nil: nobody has asked yet
}

// set moves the deadline; the zero time is never.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.when = t
	if d.expired == nil || isClosed(d.expired) {
		d.expired = make(chan struct{})
	}
	if t.IsZero() {
		return
	}
	wait := time.Until(t)
	if wait <= 0 {
		close(d.expired)
		return
	}
	expired := d.expired
	d.timer = time.AfterFunc(wait, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		// A later set may have come between the timer and the lock.
		if d.expired == expired && !d.when.IsZero() && !time.Now().Before(d.when) && !isClosed(expired) {
			close(expired)
		}
	})
}

// wait is closed when the deadline passes.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.expired == nil {
		d.expired = make(chan struct{})
	}
	return d.expired
}

// at is the moment, zero for never.
func (d *deadline) at() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.when
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// poke lets one who waits on c go on, now or when it comes to wait.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
