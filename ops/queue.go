package ops

import "sync"

// A queue does jobs one at a time, in the order of put. Whoever waits for one may do
// it, and those before it; what nobody waits for is done by a goroutine, which lives
// as long as there are jobs.
type queue struct {
	mu     sync.Mutex
	first  *Work // of those that nobody has begun
	last   *Work
	busy   bool   // someone does jobs: nobody else may, or they would overtake each other
	called bool   // a goroutine is on its way, and may find that a waiter was faster
	drain  func() // what it runs: made once, as every put may start it
}

// put adds the Work of a job. Its number is taken under the queue's lock, so that
// numbers are in the order of the jobs.
func (q *queue) put(w *Work, j job) {
	w.queue, w.job = q, j
	q.mu.Lock()
	defer q.mu.Unlock()
	j.number()
	if q.last == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
	if !q.busy {
		q.call() // even if the caller is about to wait: it may as well be about to compute
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

// work does jobs until there are none, or until that of one Work is done.
func (q *queue) work(until *Work) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy {
		return
	}
	q.busy = true
	for q.first != nil {
		w := q.first
		if q.first, w.next = w.next, nil; q.first == nil {
			q.last = nil
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
