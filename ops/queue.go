package ops

import (
	"sync"
	"time"
)

const (
	// swiftly is how many jobs in a row must have been done by those who waited for
	// them until the next is expected to be.
	swiftly = 8
	// grace is how soon it is looked whether one was not, after all, and mostGrace how soon
	// if that has been in vain for a while: every look wakes a thread.
	grace     = time.Millisecond
	mostGrace = 8 * grace
)

// A queue does jobs one at a time, in the order of put. Whoever waits for one may do
// it, and those before it; what nobody waits for is done by a goroutine, which lives
// as long as there are jobs.
//
// To have a goroutine come is to wake a thread, which on a machine whose processors
// all have a rank is to stop a rank. So while every job is waited for at once none is
// called. The first that is not then starts late, by up to grace, or after many that
// were by up to mostGrace, and those after it on time.
type queue struct {
	mu     sync.Mutex
	first  *Work // of those that nobody has begun
	last   *Work
	busy   bool   // someone does jobs: nobody else may, or they would overtake each other
	called bool   // a goroutine is on its way, and may find that a waiter was faster
	drain  func() // what it runs: made once, as every put may start it

	swift int           // jobs in a row that those who waited for them have begun
	jobs  int           // that were put while the next was expected to be waited for
	seen  int           // of those, when the timer last rang
	timer *time.Timer   // rings as long as jobs come
	timed bool          // it is set
	pause time.Duration // for how long
}

// put adds the Work of a job. Its number is taken under the queue's lock, so that
// numbers are in the order of the jobs.
func (q *queue) put(w *Work, j job) {
	w.queue, w.job = q, j
	q.mu.Lock()
	defer q.mu.Unlock()
	alone := q.last == nil
	soon := alone && !q.busy && q.swift >= swiftly
	j.number(soon)
	if alone {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
	switch {
	case q.busy:
	case soon:
		q.watch()
	default:
		q.call() // even if the caller is about to wait: it may as well be about to compute
	}
}

// watch has the timer ring, if it does not already: for each job it would cost as much
// as a small one does. The lock is held.
func (q *queue) watch() {
	if q.jobs++; q.timed {
		return
	}
	q.timed, q.pause = true, grace
	if q.timer == nil {
		q.timer = time.AfterFunc(grace, q.ring)
		return
	}
	q.timer.Reset(grace)
}

// ring calls for a job that nobody has begun.
func (q *queue) ring() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pause = min(2*q.pause, mostGrace)
	if q.first != nil && !q.busy {
		q.call()
		q.pause = grace
	}
	if q.timed = q.seen != q.jobs; q.timed {
		q.seen = q.jobs
		q.timer.Reset(q.pause)
	}
}

// call has a goroutine come. The lock is held.
func (q *queue) call() {
	if q.called {
		return
	}
	if q.drain == nil {
		q.drain = func() {
			q.mu.Lock()
			q.called = false
			q.mu.Unlock()
			q.work(nil)
		}
	}
	q.called = true
	go q.drain()
}

// help does jobs up to this one's, unless someone is at work already.
func (q *queue) help(w *Work) {
	if !w.isOver() {
		q.work(w)
	}
}

// work does jobs until there are none, or until that of one Work is done. If it has been
// done meanwhile, those after it are not this waiter's: they may wait for what it does next.
func (q *queue) work(until *Work) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy || until != nil && until.isOver() {
		return
	}
	q.busy = true
	for q.first != nil {
		w := q.first
		if q.first, w.next = w.next, nil; q.first == nil {
			q.last = nil
		}
		if q.swift++; w != until {
			q.swift = 0
		}
		q.mu.Unlock()
		w.finish(w.job.perform())
		q.mu.Lock()
		if w == until {
			break
		}
	}
	q.busy = false
	if q.first != nil {
		q.call() // what is left is somebody else's to wait for
	}
}
