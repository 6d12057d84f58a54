//go:build unix

package main

import (
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// maxStacks bounds the stacks that are shown, in bytes.
const maxStacks = 16 << 20

// onSignals keeps the record on SIGUSR1. On SIGQUIT (Ctrl-\) it does so, too, and ends the
// process with the stacks of all goroutines, as Go does. stop undoes it.
func (i *insight) onSignals(stderr io.Writer) (stop func()) {
	return onSignals(func(s os.Signal) {
		i.show(stderr)
		if s == syscall.SIGQUIT {
			stacks := make([]byte, maxStacks)
			_, _ = stderr.Write(stacks[:runtime.Stack(stacks, true)]) // nobody is left to tell
			os.Exit(128 + int(syscall.SIGQUIT))
		}
	}, syscall.SIGUSR1, syscall.SIGQUIT)
}

// passOn has a launcher's children get such signals: they are in process groups of
// their own, and it is they who have something to show.
func (c *crew) passOn() (stop func()) {
	return onSignals(func(s os.Signal) { c.signal(s.(syscall.Signal)) }, syscall.SIGUSR1, syscall.SIGQUIT)
}

// onSignals calls f for each of some signals, until stop.
func onSignals(f func(os.Signal), which ...os.Signal) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, which...)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for s := range signals {
			f(s)
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
		<-gone
	}
}
