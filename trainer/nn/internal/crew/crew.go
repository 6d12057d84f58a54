// Package crew shares the parts of a computation out over threads.
package crew

import (
	"sync"
	"sync/atomic"
)

// A Crew runs the parts of a job on some threads. Workers take parts as they
// come free, so a job's result may not depend on who runs which part: every
// part writes its own floats, and scratch memory belongs to a worker.
type Crew struct {
	job   func(worker, part int)
	parts int64
	next  atomic.Int64
	wg    sync.WaitGroup
	start []func() // one for each worker but the caller, made once: starting it allocates nothing
}

// New is a crew of so many threads, the caller's among them.
func New(threads int) *Crew {
	c := &Crew{start: make([]func(), threads-1)}
	for i := range c.start {
		c.start[i] = func() {
			defer c.wg.Done()
			c.work(i + 1)
		}
	}
	return c
}

// Run calls job for parts 0 … parts-1 and returns when all are done. Goroutines
// live for one run only, about a microsecond's cost, so a Crew needs no Close.
func (c *Crew) Run(parts int, job func(worker, part int)) {
	c.job, c.parts = job, int64(parts)
	c.next.Store(0)
	helpers := min(len(c.start), parts-1)
	c.wg.Add(helpers)
	for _, start := range c.start[:helpers] {
		go start()
	}
	c.work(0)
	c.wg.Wait()
}

func (c *Crew) work(worker int) {
	for {
		part := c.next.Add(1) - 1
		if part >= c.parts {
			return
		}
		c.job(worker, int(part))
	}
}
