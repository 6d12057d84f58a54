package ops

import (
	"errors"
	"fmt"
)

// A MismatchError says that two ranks of a group issued different operations,
// or one operation with different arguments. Every rank of the group gets it,
// and the group refuses further work with it; other groups go on.
type MismatchError struct {
	Rank   int  // a rank that differs from this one
	Ours   Call // what this rank issued
	Theirs Call // what that rank issued
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("ops: rank %d is in %v, we are in %v%s: every rank of a group must issue the same operations in the same order",
		e.Rank, e.Theirs, e.Ours, e.Ours.differs(e.Theirs))
}

// An AbortedError says that a rank gave up an operation, by its context or its
// timeout or an error of its own, while this rank took part in it. The group
// refuses further work with it.
type AbortedError struct {
	Rank   int
	Call   Call
	Reason string
}

func (e *AbortedError) Error() string {
	return fmt.Sprintf("ops: rank %d gave up %v: %s", e.Rank, e.Call, e.Reason)
}

// ErrSelf is the error of a message to oneself, which no lane could carry.
var ErrSelf = errors.New("ops: a rank cannot send to or receive from itself")

// argument is the error of a bad argument: nothing has moved, and the group is
// as usable as before.
func argument(k Kind, format string, a ...any) error {
	return fmt.Errorf("ops: %v: "+format, append([]any{k}, a...)...)
}
