package ops

import "sync"

// A Work is an operation in flight. It takes its place in the group's order
// when it is issued, and moves data later.
type Work struct {
	done   chan struct{}
	err    error // set before done closes
	source int   // set before done closes
}

func newWork() *Work { return &Work{done: make(chan struct{}), source: -1} }

// failed is a Work that never began.
func failed(err error) *Work {
	w := newWork()
	w.finish(err)
	return w
}

// skipped is the Work of a collective of a group that this process is not in.
func skipped() *Work { return failed(nil) }

func (w *Work) finish(err error) {
	w.err = err
	close(w.done)
}

// Wait blocks until the operation has ended on this rank, and returns its
// error. An error of the arguments comes out here too: there is one path. The
// operation's own context and timeout bound the wait.
func (w *Work) Wait() error {
	<-w.done
	return w.err
}

// Done closes when the operation has ended on this rank.
func (w *Work) Done() <-chan struct{} { return w.done }

// Source is the rank that a receive got its message from, when the operation has
// ended; it waits as Wait does. It is −1 for what is no receive, and for a receive
// from any source that ended without a message.
func (w *Work) Source() int {
	<-w.done
	return w.source
}

// A queue runs jobs one at a time, in the order of put. Its goroutine lives as
// long as there are jobs.
type queue struct {
	mu   sync.Mutex
	jobs []func()
	busy bool
}

// put adds a job. before, when not nil, runs first, under the queue's lock: what
// it numbers, it numbers in the order of the jobs.
func (q *queue) put(before func(), job func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if before != nil {
		before()
	}
	q.jobs = append(q.jobs, job)
	if !q.busy {
		q.busy = true
		go q.drain()
	}
}

func (q *queue) drain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) > 0 {
		job := q.jobs[0]
		q.jobs[0] = nil
		q.jobs = q.jobs[1:]
		q.mu.Unlock()
		job()
		q.mu.Lock()
	}
	q.busy = false
}
