package main

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// The exit statuses; those of a signal follow the shell's 128 + its number.
const (
	statusFailed = 1 // the run went wrong: a peer was lost, a world did not form
	statusUsage  = 2 // the command line or a file that it names is at fault
	statusNoGPU  = 3 // of peer gpu: there is none that can be used
)

// A usageError says that the person at the keyboard can mend it.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usagef is fmt.Errorf for usage errors.
func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// An interruptedError says that a signal ended the run.
type interruptedError struct{ signal syscall.Signal }

// Error has a word for Ctrl-C, which nobody needs explained.
func (e *interruptedError) Error() string {
	if e.signal == syscall.SIGINT {
		return "interrupted"
	}
	return "ended by signal: " + e.signal.String()
}

// A childError says which rank of a launch failed first, and how.
type childError struct {
	rank   int
	who    string // what it is called
	status int    // what the launcher exits with
	how    string
}

func (e *childError) Error() string {
	return fmt.Sprintf("%s failed first: %s", e.who, e.how)
}

// exitStatus is what the process exits with after err. An interruption goes
// first: what else went wrong is then its consequence.
func exitStatus(err error) int {
	var (
		interrupted *interruptedError
		usage       *usageError
		child       *childError
		none        *noGPUError
	)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &interrupted):
		return 128 + int(interrupted.signal)
	case errors.As(err, &usage):
		return statusUsage
	case errors.As(err, &child):
		return child.status
	case errors.As(err, &none):
		return statusNoGPU
	}
	return statusFailed
}

// oneLine is err as the one line that is printed about it.
func oneLine(err error) string {
	s := strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	return "peer: " + strings.TrimPrefix(strings.TrimPrefix(s, "peer: "), "trainer: the next world: ")
}
