package crew

import (
	"sync/atomic"
	"testing"
)

func TestCrew(t *testing.T) {
	for threads := 1; threads <= 4; threads++ {
		c := New(threads)
		for _, n := range []int{1, 2, 3, 50} {
			done, busy := make([]atomic.Int32, n), make([]atomic.Int32, threads)
			c.Run(n, func(worker, part int) {
				if busy[worker].Add(1) != 1 {
					t.Errorf("worker %d has two parts", worker)
				}
				done[part].Add(1)
				busy[worker].Add(-1)
			})
			for i := range done {
				if done[i].Load() != 1 {
					t.Errorf("%d threads, %d parts: part %d ran %d times", threads, n, i, done[i].Load())
				}
			}
		}
	}
}
