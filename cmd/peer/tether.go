package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// The two inherited pipes of a launched child. Addresses and keys travel on
// them, not in arguments or parsed output.
const (
	// tetherFD comes from the launcher: a brief, then, for all but the first
	// child, the address of the first. It stays open after that, because its end
	// is the launcher's: the kernel closes it however the launcher dies.
	tetherFD = 3
	// reportFD goes to the launcher, from the first child only: its addresses.
	reportFD = 4
)

// A brief is all that a launched child is told.
type brief struct {
	Train   *trainCmd   `json:",omitempty"` // this, or
	Bench   *benchCmd   `json:",omitempty"` // this, or
	GPUPair *gpuPairCmd `json:",omitempty"` // this
	First   bool        // reports its addresses, is told none
	Local   int         // ranks that share this machine
	Columns int         // of the launcher's terminal; zero when it has none
	Keep    bool        // its key, as it may be started again
}

// A tether is a child's end of the pipes.
type tether struct {
	report    *os.File
	bootstrap chan []string
	keep      bool // the key's file
}

// errLauncherGone is why a child ends when its launcher did first, or when it
// gave up because another child failed before they had met.
var errLauncherGone = errors.New("the launcher has let go of this rank")

// openTether takes over the inherited pipes and returns the child's brief. From
// then on, the end of the launcher calls orphaned.
func openTether(orphaned func()) (*tether, *brief, error) {
	down, err := inherited(tetherFD, "tether")
	if err != nil {
		return nil, nil, err
	}
	d := json.NewDecoder(down)
	var b brief
	if err := d.Decode(&b); err != nil {
		return nil, nil, fmt.Errorf("%w before it said what to do: %w", errLauncherGone, err)
	}
	t := &tether{bootstrap: make(chan []string, 1), keep: b.Keep}
	if b.First {
		if t.report, err = inherited(reportFD, "report"); err != nil {
			return nil, nil, err
		}
	}
	go t.watch(d, orphaned)
	return t, &b, nil
}

// tie is openTether for a process that ends when its launcher does.
func tie(p *process) (*tether, *brief, error) {
	return openTether(func() {
		fmt.Fprintln(p.stderr, oneLine(errLauncherGone))
		os.Exit(statusFailed)
	})
}

// watch passes on the one message that follows the brief and then waits for
// the pipe's end. It lives as long as the process.
func (t *tether) watch(d *json.Decoder, orphaned func()) {
	var addrs []string
	if d.Decode(&addrs) == nil {
		t.bootstrap <- addrs
		_ = d.Decode(&struct{}{}) // nothing more is sent: this returns at the end
	}
	orphaned()
}

// meet exchanges addresses through the launcher: the first child reports its
// own, the others wait for them.
func (t *tether) meet(ctx context.Context, own []string) (bootstrap []string, err error) {
	if t.report != nil {
		err := json.NewEncoder(t.report).Encode(own)
		if err := errors.Join(err, t.report.Close()); err != nil {
			return nil, fmt.Errorf("reporting to the launcher: %w", err)
		}
		return nil, nil
	}
	select {
	case addrs := <-t.bootstrap:
		return addrs, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// inherited opens a descriptor that the launcher passed on, and keeps it from
// this process's own children. Without a launcher the number belongs to
// nothing, or to the runtime, whose file is left alone.
func inherited(fd uintptr, name string) (*os.File, error) {
	if !adopt(fd) {
		return nil, usagef("--launched is for the children of another peer: descriptor %d is not the %s pipe", fd, name)
	}
	return os.NewFile(fd, name), nil
}

// sendLine writes v to a child as one line of JSON. A child that is gone
// already is no error here: its exit tells more.
func sendLine(w io.Writer, v any) error {
	err := json.NewEncoder(w).Encode(v)
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}
