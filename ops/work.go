package ops

import "sync"

// A Work is an operation in flight. It takes its place in the group's order
// when it is issued, and moves data later.
type Work struct {
	ended  sync.WaitGroup
	err    error // set before the end
	source int   // set before the end

	mu   sync.Mutex
	over bool
	done chan struct{} // made when asked for: most Works are only waited for

	queue *queue // that it stands in, or stood; nil: none
	next  *Work
	job   job
}

// A job is what a Work in a queue stands for.
type job interface {
	// number takes its place in the order: called when it is put in the queue. soon says
	// that it is expected to be performed at once.
	number(soon bool)
	perform() error // does it, and says what the Work ends with
}

func newWork() *Work {
	w := new(Work)
	w.begin()
	return w
}

func (w *Work) begin() {
	w.source = -1
	w.ended.Add(1)
}

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
	w.mu.Lock()
	if w.over = true; w.done != nil {
		close(w.done)
	}
	w.mu.Unlock()
	w.ended.Done()
}

// Wait blocks until the operation has ended on this rank, and returns its
// error. An error of the arguments comes out here too: there is one path. The
// operation's own context and timeout bound the wait.
//
// What is waited for before anyone else has begun with it is done by the waiter
// itself, which spares a small operation the hand-over to another goroutine.
func (w *Work) Wait() error {
	if w.queue != nil {
		w.queue.help(w)
	}
	w.ended.Wait()
	return w.err
}

// Done closes when the operation has ended on this rank.
func (w *Work) Done() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done == nil {
		w.done = make(chan struct{})
		if w.over {
			close(w.done)
		}
	}
	return w.done
}

// isOver reports whether the operation has ended.
func (w *Work) isOver() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

// Source is the rank that a receive got its message from, when the operation has
// ended; it waits as Wait does. It is −1 for what is no receive, and for a receive
// from any source that ended without a message.
func (w *Work) Source() int {
	_ = w.Wait() // the error is Wait's to tell
	return w.source
}
