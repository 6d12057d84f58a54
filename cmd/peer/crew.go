package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

const (
	// childPatience is how long interrupted children may take to end by
	// themselves; it leaves the launcher time to see it within its own patience.
	childPatience = 400 * time.Millisecond
	// meshPatience is how long the others may take after one child failed. The
	// mesh tells them within a second or two; its own bound is 5 s.
	meshPatience = 5 * time.Second
	// outputPatience bounds the wait for the output of a child that is gone
	// while some grandchild holds its pipes.
	outputPatience = 200 * time.Millisecond
)

// A crew is a set of running child processes, each the head of its own process
// group, so that a terminal's Ctrl-C reaches only the launcher, which passes
// signals on in its own words.
type crew struct {
	mu        sync.Mutex // guards children against passOn
	children  []*exec.Cmd
	ends      chan end
	onFailure func() // called at the first failure; nil: nothing

	first int              // number of the first child among the ranks of all machines
	of    func(int) string // what a child is called; nil: a rank
	// revive is asked about each failure before the first that counts: it gives what
	// starts the child again, or nil if that is how it ends.
	revive func(failure *childError) (start func() error)
	again  chan revival // those whose time has come

	ids  []string              // the children's peers; nil: not known
	said map[int]func() string // by child: its last line on stderr, once it has ended
}

// An end is the exit of one child; err is nil for status 0.
type end struct {
	rank int
	err  error
}

// enlist starts a command as the next child, or as one that has ended.
func (c *crew) enlist(child int, cmd *exec.Cmd) error {
	if c.ends == nil {
		c.ends = make(chan end)
	}
	// Stdin stays empty: a background process group may not read the terminal.
	cmd.SysProcAttr = ownGroup()
	cmd.WaitDelay = outputPatience
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", c.name(child), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if child == len(c.children) {
		c.children = append(c.children, nil)
	}
	c.children[child] = cmd
	logger.Debugf("%s is process %d", c.name(child), cmd.Process.Pid)
	go func() { c.ends <- end{child, cmd.Wait()} }()
	return nil
}

// wait returns when every child has ended, with the first failure (see culprit) as a
// childError, or with the cause of ctx if that ended first. It never waits for
// long on those that are left: after an interruption, and after a failure, the
// rest have their patience to end by themselves and are killed then.
func (c *crew) wait(ctx context.Context) error {
	var (
		first    error
		deadline <-chan time.Time
		done     = ctx.Done()
		failures = make(map[int]*childError) // but of those that we have killed
		killed   bool
	)
	for left := len(c.children); left > 0; {
		select {
		case r := <-c.again:
			if first == nil && r.start() == nil {
				continue
			}
			left-- // its failure has been told
			failures[r.failure.rank-c.first] = r.failure
			first = cmp.Or(first, error(r.failure))
			deadline = cmp.Or(deadline, time.After(meshPatience))
		case e := <-c.ends:
			if first == nil && c.revived(e) {
				continue
			}
			left--
			if e.err != nil && !killed {
				failures[e.rank] = c.describe(e)
			}
			if e.err != nil && first == nil {
				first = failures[e.rank]
				deadline = time.After(meshPatience)
				if c.onFailure != nil {
					c.onFailure()
				}
			}
		case <-done:
			done = nil
			first = context.Cause(ctx)
			c.signal(signalOf(first))
			deadline = time.After(childPatience)
		case <-deadline:
			deadline, killed = nil, true
			c.signal(syscall.SIGKILL)
		}
	}
	return c.culprit(first, failures)
}

// signal sends s to the group of each child. One that has been waited for
// already takes no more signals, so no stranger's process can be meant.
func (c *crew) signal(s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cmd := range c.children {
		if cmd.Process.Signal(syscall.Signal(0)) == nil {
			signalGroup(cmd, s)
		}
	}
}

// signalOf is the signal to pass on after a context's end.
func signalOf(cause error) syscall.Signal {
	var interrupted *interruptedError
	if errors.As(cause, &interrupted) {
		return interrupted.signal
	}
	return syscall.SIGTERM
}

// name is what a child is called.
func (c *crew) name(child int) string {
	if c.of != nil {
		return c.of(child)
	}
	return fmt.Sprintf("rank %d", c.first+child)
}

// describe turns a child's failure into the launcher's.
func (c *crew) describe(e end) *childError {
	failure := &childError{rank: c.first + e.rank, who: c.name(e.rank), status: statusFailed, how: e.err.Error()}
	var exit *exec.ExitError
	if !errors.As(e.err, &exit) {
		return failure
	}
	pid := c.children[e.rank].Process.Pid
	switch status := exit.Sys().(syscall.WaitStatus); {
	case status.Signaled():
		failure.how = fmt.Sprintf("process %d was ended by signal %d (%v)", pid, status.Signal(), status.Signal())
	default:
		failure.status = exit.ExitCode()
		failure.how = fmt.Sprintf("process %d exited with status %d", pid, exit.ExitCode())
	}
	return failure
}

// closeAll closes what the launcher passed on to its children, or read from them.
func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close() // a pipe's end: nothing is written on close
		}
	}
}
