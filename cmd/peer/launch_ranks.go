package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// ranks are the processes of this machine that are to be one world, perhaps with those
// of others.
type ranks struct {
	n     int
	raw   bool                                           // rank 0 speaks for all, without a prefix
	child func(rank int, key string) (*exec.Cmd, *brief) // the brief is nil for another program
	place Placement
	met   bool // they find each other without the launcher
}

// launchRanks runs a verb of this program in n children that are one world on this
// machine: it starts them, introduces them to each other and stays until the last of
// them has ended. A child is told its brief, in which its key is its rank's.
func launchRanks(p *process, verb string, n int, raw bool, tell func(rank int, key string) *brief) error {
	r := ranks{n: n, raw: raw, place: Placement{NumMachines: 1, Pin: "never"}}
	r.child = func(rank int, key string) (*exec.Cmd, *brief) { return ownChild(verb), tell(rank, key) }
	return r.launch(p)
}

// ownChild is this program as a launched child.
func ownChild(verb string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		exe = os.Args[0]
	}
	return exec.Command(exe, verb, "--launched")
}

// launch starts the ranks and returns when all have ended.
func (k ranks) launch(p *process) error {
	if err := launchable(); err != nil {
		return err
	}
	// On Linux the children are killed when the thread that started them ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	keys, err := newIdentities(k.n, k.place.MachineID, k.place.NumMachines)
	if err != nil {
		return err
	}
	defer func() {
		if err := keys.remove(); err != nil {
			fmt.Fprintf(p.stderr, "peer: the keys were not removed: %v\n", err)
		}
	}()

	// When not all can be started, those that run are ended like after a signal.
	ctx, cancel := context.WithCancelCause(p.ctx)
	defer cancel(nil)
	r := &launch{crew: crew{first: k.place.first, ids: keys.peers, said: make(map[int]func() string)}}
	r.onFailure = r.abandon
	r.introduced.Store(k.met)
	con, cores := new(console), shareCores(k.place.Pin, k.n)
	start := func(rank int) error { return k.start(r, con, p, rank, keys.paths[rank], cores) }
	r.revive = k.reviver(start)
	for rank := range k.n {
		if err = start(rank); err != nil {
			cancel(err)
			break
		}
	}
	if err == nil && !k.met {
		r.introducing.Go(func() { r.failed = r.introduce() })
	}
	defer r.passOn()()
	return r.wait(ctx)
}

// start starts the process of a rank, for the first time or again.
func (k ranks) start(r *launch, con *console, p *process, rank int, key string, cores [][]int) error {
	cmd, b := k.child(rank, key)
	if err := r.attach(cmd, con, p, k.place.first+rank, k.raw, k.place); err != nil {
		return err
	}
	if cores != nil {
		defer pinThread(cores[rank])() // a child is born with its parent's
	}
	if b == nil {
		return r.enlist(rank, cmd)
	}
	b.First, b.Local, b.Keep = rank == 0 && !k.met, k.n, k.met
	if cores != nil {
		b.Local = 1 // of its own cores
	}
	return r.begin(rank, cmd, b)
}

// reviver says what to do about a rank that has failed: start it again, unless that has
// been done too often.
func (k ranks) reviver(start func(rank int) error) func(failure *childError) func() error {
	if k.place.Restart != "on-failure" {
		return nil
	}
	again := make([]int, k.n)
	return func(failure *childError) func() error {
		rank := failure.rank - k.place.first
		if again[rank]++; again[rank] > k.place.MaxRestarts {
			return nil
		}
		logger.Warnf("rank %d failed: %s; it is started again (%d of %d)", failure.rank, failure.how, again[rank], k.place.MaxRestarts)
		return func() error { return start(rank) }
	}
}

// attach gives a child its way to the console, to its log files, or to both. What is
// raw stays as it is, without a prefix, and is passed on of rank 0 only: every rank
// says the same.
func (r *launch) attach(cmd *exec.Cmd, con *console, p *process, rank int, raw bool, place Placement) error {
	_, bars := terminal(p.stdout)
	prefix := rankPrefix(p.stdout, rank)
	if raw {
		prefix, bars = "", false
	}
	out := con.writer(p.stdout, prefix, bars)
	if raw && rank > 0 {
		out = con.writer(io.Discard, "", false)
	}
	errs := con.writer(p.stderr, rankPrefix(p.stderr, rank), false)
	words := new(lastWords)
	cmd.Stdout, cmd.Stderr = out, io.MultiWriter(words, errs)
	r.said[rank-r.first] = words.said
	r.outputs = append(r.outputs, out, errs)
	if place.RankLogs == "" {
		return nil
	}
	if err := os.MkdirAll(place.RankLogs, 0o755); err != nil {
		return usagef("--rank-logs: %w", err)
	}
	for ending, to := range map[string]*io.Writer{"out": &cmd.Stdout, "err": &cmd.Stderr} {
		path := filepath.Join(place.RankLogs, fmt.Sprintf("rank-%d.%s", rank, ending))
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) // a rank may be started again
		if err != nil {
			return usagef("--rank-logs: %w", err)
		}
		r.outputs = append(r.outputs, f)
		if place.Tee {
			*to = io.MultiWriter(*to, f)
			continue
		}
		if to == &cmd.Stderr {
			r.said[rank-r.first] = func() string { return lastIn(path) }
		}
		*to = f
	}
	return nil
}

// A revival is a child that has failed, and whose time has come to be started again.
type revival struct {
	failure *childError
	start   func() error
}

// revived reports whether a child that has ended will be started again, which it is
// after a pause.
func (c *crew) revived(e end) bool {
	if e.err == nil || c.revive == nil {
		return false
	}
	failure := c.describe(e)
	start := c.revive(failure)
	if start == nil {
		return false
	}
	if c.again == nil {
		c.again = make(chan revival, len(c.children)) // room for all, so that none is stuck
	}
	time.AfterFunc(restartPause, func() { c.again <- revival{failure, start} })
	return true
}

// usable says of another program that it cannot be started, before anything is.
func usable(command []string) error {
	if _, err := exec.LookPath(command[0]); err != nil {
		return usagef("the trainer %s cannot be started: %w", command[0], errors.Unwrap(err))
	}
	return nil
}
