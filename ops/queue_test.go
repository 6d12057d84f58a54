package ops

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// An errand is a job that notes when it was numbered and done.
type errand struct {
	Work
	name string
	log  *journal
	took time.Duration
	err  error
}

type journal struct {
	mu       sync.Mutex
	numbered []string
	done     []string
}

func (e *errand) number(bool) { e.log.numbered = append(e.log.numbered, e.name) }

func (e *errand) perform() error {
	time.Sleep(e.took)
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	e.log.done = append(e.log.done, e.name)
	return e.err
}

func send(q *queue, log *journal, took time.Duration, err error, names ...string) (all []*errand) {
	for _, name := range names {
		e := &errand{name: name, log: log, took: took, err: err}
		e.begin()
		q.put(&e.Work, e)
		all = append(all, e)
	}
	return all
}

// Jobs are done one at a time, in the order of their numbers, whoever does them.
func TestQueueKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queue
		var log journal
		start := time.Now()
		first := send(&q, &log, time.Second, nil, "a", "b", "c", "d")
		var waiters sync.WaitGroup
		for _, e := range []*errand{first[2], first[0], first[2]} {
			waiters.Go(func() {
				if err := e.Wait(); err != nil {
					t.Error(err)
				}
			})
		}
		waiters.Wait()
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("three jobs of a second took %v", d)
		}
		<-first[3].Done() // which nobody does for it
		if want := []string{"a", "b", "c", "d"}; !slices.Equal(log.done, want) || !slices.Equal(log.numbered, want) {
			t.Errorf("numbered %v, done %v", log.numbered, log.done)
		}
	})
}

// A queue is of use again when it has been empty.
func TestQueueAfterARest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queue
		var log journal
		bad := errors.New("bad")
		for i := range 3 {
			for _, e := range send(&q, &log, time.Millisecond, bad, "x", "y") {
				if i == 1 {
					synctest.Wait()
				}
				if err := e.Wait(); err != bad {
					t.Errorf("got %v", err)
				}
			}
			synctest.Wait()
		}
		if len(log.done) != 6 || q.busy || q.called || q.first != nil || q.last != nil {
			t.Errorf("done %v, left %+v", log.done, q.first)
		}
	})
}

// A waiter whose job is done just before it would help leaves those after it alone, which
// may wait for what it is about to do.
func TestQueueHelpsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue{swift: swiftly}
		var log journal
		first := send(&q, &log, 0, nil, "first")[0]
		if err := first.Wait(); err != nil {
			t.Error(err)
		}
		start := time.Now()
		later := send(&q, &log, time.Hour, nil, "later")[0]
		if q.work(&first.Work); time.Since(start) > 0 {
			t.Errorf("kept for %v by another job", time.Since(start))
		}
		<-later.Done()
	})
}

// As long as every job is waited for at once, no goroutine is called; one that is not
// starts late, and those after it on time.
func TestQueueCallsOnlyWhomItNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queue
		var log journal
		for i := range 2 * swiftly {
			e := send(&q, &log, 0, nil, "swift")[0]
			q.mu.Lock()
			called := q.called
			q.mu.Unlock()
			if called != (i < swiftly) {
				t.Errorf("job %d: called %v", i, called)
			}
			if err := e.Wait(); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		start := time.Now()
		<-send(&q, &log, 0, nil, "late")[0].Done()
		if d := time.Since(start); d == 0 || d > grace {
			t.Errorf("took %v", d)
		}
		<-send(&q, &log, 0, nil, "on time")[0].Done()
		if d := time.Since(start); d > grace {
			t.Errorf("the next took until %v", d)
		}
	})
}

// The longer all jobs have been waited for, the less often it is looked whether one is
// not, down to a bound, and what is not then starts within that.
func TestQueueLooksEverLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue{swift: swiftly}
		var log journal
		for start := time.Now(); time.Since(start) < 10*mostGrace; time.Sleep(grace / 2) {
			if err := send(&q, &log, 0, nil, "swift")[0].Wait(); err != nil {
				t.Error(err)
			}
		}
		if q.pause != mostGrace {
			t.Errorf("looks every %v", q.pause)
		}
		start := time.Now()
		<-send(&q, &log, 0, nil, "late")[0].Done()
		if d := time.Since(start); d > mostGrace {
			t.Errorf("took %v", d)
		}
		synctest.Wait()
		if q.mu.Lock(); q.pause != grace {
			t.Errorf("looks every %v after one that was late", q.pause)
		}
		q.mu.Unlock()
		time.Sleep(4 * mostGrace) // the timer ends, as the bubble wants
	})
}

// Of two jobs the first is done without anyone waiting for it.
func TestQueueCallsForTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queue
		var log journal
		q.swift = swiftly
		start := time.Now()
		for _, e := range send(&q, &log, 0, nil, "a", "b") {
			<-e.Done()
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("took %v", d)
		}
		time.Sleep(4 * grace)
		synctest.Wait()
		if q.timed {
			t.Error("the timer rings on")
		}
	})
}

// Done is one channel, whether it is asked for before the end or after.
func TestDone(t *testing.T) {
	w := newWork()
	early := w.Done()
	select {
	case <-early:
		t.Error("done before the end")
	default:
	}
	w.finish(nil)
	<-early
	if w.Done() != early {
		t.Error("two channels")
	}
	<-failed(errors.New("bad")).Done()
	if w.Source() != -1 {
		t.Errorf("source %d", w.Source())
	}
}
