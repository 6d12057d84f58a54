package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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

// begin starts a child with its pipes and hands it its brief.
func (r *launch) begin(rank int, cmd *exec.Cmd, b *brief) error {
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
	if err := r.enlist(rank, cmd); err != nil {
		return err
	}
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
