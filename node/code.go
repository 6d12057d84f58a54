package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// Why a stream was reset. The side that resets says so with a code; the other
// side's reads and writes fail with a *ResetError that is one of these.
var (
	// ErrGaveUp: the context that the stream served has ended.
	ErrGaveUp = errors.New("gave up")
	// ErrViolation: the other side broke the protocol.
	ErrViolation = errors.New("protocol violation")
	// ErrLimit: the stream was one too many.
	ErrLimit = errors.New("limit reached")
	// ErrStale: the stream belongs to something that is past or was never there.
	ErrStale = errors.New("out of date")
	// ErrClosed: the node, or what the stream served on it, is closed.
	ErrClosed = errors.New("closed")
)

// The reset codes on the wire. Values are never renumbered. libp2p keeps
// 0x1000 and up for itself; ours start at "PM" << 16.
const (
	CodeFailed network.StreamErrorCode = 0x504d0000 + iota
	CodeGaveUp
	CodeViolation
	CodeLimit
	CodeStale
	CodeClosed
)

var codes = []struct {
	code network.StreamErrorCode
	err  error
}{
	{CodeGaveUp, ErrGaveUp},
	{CodeGaveUp, context.Canceled},
	{CodeGaveUp, context.DeadlineExceeded},
	{CodeViolation, ErrViolation},
	{CodeLimit, ErrLimit},
	{CodeLimit, network.ErrResourceLimitExceeded},
	{CodeLimit, &network.StreamError{ErrorCode: network.StreamResourceLimitExceeded, Remote: true}},
	{CodeStale, ErrStale},
	{CodeClosed, ErrClosed},
}

// CodeOf is the code that tells the other side of err.
func CodeOf(err error) network.StreamErrorCode {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return CodeFailed
}

// ErrorOf is the reverse of CodeOf; nil for a code that says nothing.
func ErrorOf(code network.StreamErrorCode) error {
	if code == network.StreamResourceLimitExceeded {
		return ErrLimit
	}
	for _, c := range codes {
		if c.code == code {
			return c.err
		}
	}
	return nil
}

// ResetError is what an operation returns on a stream that the other side has
// reset on purpose. A connection that broke gives another error.
type ResetError struct {
	Peer peer.ID
	Code network.StreamErrorCode
}

func (e *ResetError) Error() string {
	if err := ErrorOf(e.Code); err != nil {
		return fmt.Sprintf("node: stream reset by %s: %v", e.Peer, err)
	}
	return fmt.Sprintf("node: stream reset by %s: code %#x", e.Peer, uint32(e.Code))
}

// Unwrap is the sentinel of the code, if it has one.
func (e *ResetError) Unwrap() error { return ErrorOf(e.Code) }
