package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
)

// A launch is the running children and the launcher's ends of their pipes.
type launch struct {
	crew
	tethers []*os.File // to each child; open as long as the launcher lives
	report  *os.File   // from the first
	outputs []io.Closer

	introducing sync.WaitGroup
	introduced  atomic.Bool // the first child has reported
	failed      error       // of the introduction
}

// launchRanks runs a verb of this program in n children that are one world on this
// machine: it starts them, introduces them to each other and stays until the last of
// them has ended. A child is told its brief, in which its key is its rank's.
func launchRanks(p *process, verb string, n int, raw bool, brief func(rank int, key string) *brief) error {
	if err := launchable(); err != nil {
		return err
	}
	// On Linux the children are killed when the thread that started them ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	keys, err := newIdentities(n)
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
	r := new(launch)
	r.onFailure = r.abandon
	con := new(console)
	for rank, key := range keys.paths {
		b := brief(rank, key)
		b.First, b.Local = rank == 0, n
		if err = r.start(con, p, verb, raw, rank, b); err != nil {
			cancel(err)
			break
		}
	}
	if err == nil {
		r.introducing.Go(func() { r.failed = r.introduce() })
	}
	defer r.passOn()()
	return r.wait(ctx)
}

// start starts the child of a rank.
func (r *launch) start(con *console, p *process, verb string, raw bool, rank int, b *brief) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(exe, verb, "--launched")
	r.attach(cmd, con, p, rank, raw)
	return r.begin(cmd, b)
}

// attach gives a child its way to the console. What is raw stays as it is, without
// a prefix, and is passed on of rank 0 only: every rank says the same.
func (r *launch) attach(cmd *exec.Cmd, con *console, p *process, rank int, raw bool) {
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
	cmd.Stdout, cmd.Stderr = out, errs
	r.outputs = append(r.outputs, out, errs)
}

// begin starts a child with its pipes and hands it its brief.
func (r *launch) begin(cmd *exec.Cmd, b *brief) error {
	// The child's ends are closed here once it has them: a pipe ends when its last
	// writer is gone, and that must be the process at the other end.
	childEnd, tether, err := os.Pipe()
	if err != nil {
		return err
	}
	defer childEnd.Close()
	r.tethers = append(r.tethers, tether)
	cmd.ExtraFiles = []*os.File{childEnd}
	if b.First {
		report, write, err := os.Pipe()
		if err != nil {
			return err
		}
		defer write.Close()
		r.report = report
		cmd.ExtraFiles = append(cmd.ExtraFiles, write)
	}
	if err := r.enlist(cmd); err != nil {
		return err
	}
	logger.Debugf("rank %d is process %d", len(r.children)-1, cmd.Process.Pid)
	return sendLine(tether, b)
}

// introduce passes the first child's addresses on to the others.
func (r *launch) introduce() error {
	var addrs []string
	if err := json.NewDecoder(r.report).Decode(&addrs); err != nil {
		return fmt.Errorf("rank 0 has not reported its addresses: %w", err)
	}
	r.introduced.Store(true)
	for _, t := range r.tethers[1:] {
		if err := sendLine(t, addrs); err != nil {
			return err
		}
	}
	return nil
}

// abandon ends children that have not met: no mesh will tell them that one of
// them has failed. Those that have met learn it from each other, with the reason.
func (r *launch) abandon() {
	if !r.introduced.Load() {
		closeAll(r.tethers...)
	}
}

// wait returns when all children have ended and their last output is out.
func (r *launch) wait(ctx context.Context) error {
	err := r.crew.wait(ctx)
	closeAll(append(r.tethers, r.report)...)
	r.introducing.Wait()
	if err == nil {
		err = r.failed
	}
	for _, o := range r.outputs {
		err = errors.Join(err, o.Close())
	}
	return err
}
