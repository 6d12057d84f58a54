package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// patience bounds how long a run may take to end in good order after a signal:
// telling the other ranks, ending the children. A launch's children have less
// (see childPatience), so that their ends are still seen.
const patience = 700 * time.Millisecond

// interruptible returns a context that SIGINT or SIGTERM cancels, with an
// interruptedError as its cause. When the process is still there after its
// patience, or at a second signal, it is ended by force: compute in mid-step
// and system calls need not know about signals. stop undoes all of it.
func interruptible(parent context.Context, stderr io.Writer) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2) // two, because the second ends the patience
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	done := make(chan struct{})
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		var cause *interruptedError
		select {
		case s := <-signals:
			cause = &interruptedError{s.(syscall.Signal)}
		case <-done:
			return
		}
		cancel(cause)
		select {
		case <-signals:
		case <-time.After(patience):
		case <-done:
			return
		}
		fmt.Fprintln(stderr, oneLine(cause))
		os.Exit(exitStatus(cause))
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		<-gone
		cancel(nil)
	}
}
