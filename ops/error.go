package ops

import (
	"errors"
	"fmt"
)

// A MismatchError says that two ranks of a group issued different operations,
// or one operation with different arguments. Every rank of the group gets it,
// and the group refuses further work with it; other groups go on.
//
// That of a message, whose Calls are of KindSend, concerns its sender and its
// receiver only, and nothing is refused after it.
type MismatchError struct {
	Rank   int  // a rank that differs from this one, in the world
	Ours   Call // what this rank issued
	Theirs Call // what that rank issued
}

func (e *MismatchError) Error() string {
	if e.Ours.Kind == KindSend && e.Theirs.Kind == KindSend {
		return fmt.Sprintf("ops: rank %d has %v, we have %v: a message and its receive must have the same element type and count",
			e.Rank, e.Theirs, e.Ours)
	}
	if e.Ours.Kind.ownCounts() && e.Ours.agrees(e.Theirs) {
		return fmt.Sprintf("ops: rank %d has %v, we have %v: a part that is sent and the one that takes it must have the same count",
			e.Rank, e.Theirs, e.Ours)
	}
	return fmt.Sprintf("ops: rank %d is in %v, we are in %v%s: every rank of a group must issue the same operations in the same order",
		e.Rank, e.Theirs, e.Ours, e.Ours.differs(e.Theirs))
}

// An AbortedError says that a rank gave up an operation, by its context or its
// timeout or an error of its own, while this rank took part in it. The group
// refuses further work with it.
type AbortedError struct {
	Rank   int // in the world
	Call   Call
	Reason string
}

func (e *AbortedError) Error() string {
	return fmt.Sprintf("ops: rank %d gave up %v: %s", e.Rank, e.Call, e.Reason)
}

// A MissingError says that ranks have not come to a monitored barrier in time.
// Every rank that has come gets it, and the group refuses further work with it,
// for its ranks have parted; other groups go on.
type MissingError struct {
	Ranks []int // in the world
	Call  Call
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("ops: %v: missing in time: ranks %v", e.Call, e.Ranks)
}

// ErrNotMember is the error of a message in a group that this process is not in.
var ErrNotMember = errors.New("ops: this process is not a member of the group")

// ErrSelf is the error of a message to oneself, which no lane could carry.
var ErrSelf = errors.New("ops: a rank cannot send to or receive from itself")

// A badCall is an error of arguments that only some ranks give, and so find wrong.
// It comes out after the call is issued, so that the others, who wait, learn why.
type badCall struct{ err error }

func (e *badCall) Error() string { return e.err.Error() }
func (e *badCall) Unwrap() error { return e.err }

// argument is the error of a bad argument: nothing has moved, and the group is
// as usable as before.
func argument(k Kind, format string, a ...any) error {
	return fmt.Errorf("ops: %v: "+format, append([]any{k}, a...)...)
}
