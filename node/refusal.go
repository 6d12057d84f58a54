package node

import (
	"errors"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
)

// Why two nodes do not talk to each other, found in a *DialError by errors.Is.
var (
	// ErrSecret: one has a secret that the other does not share.
	ErrSecret = errors.New("not the same secret")
	// ErrNotAllowed: one is not on the other's list.
	ErrNotAllowed = errors.New("not on the allow list")
)

// The codes with which a connection is closed, as far as they are ours; see the
// reset codes of streams.
const (
	CodeSecret     network.ConnErrorCode = 0x504d0100
	CodeNotAllowed network.ConnErrorCode = 0x504d0101

	codeNotAllowed = network.StreamErrorCode(CodeNotAllowed) // of the streams on it
)

// A refusal is one of the errors above in more words.
type refusal struct {
	kind error
	text string
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.kind }

// refusalOf is the refusal in an error of libp2p's, or the error itself.
func refusalOf(err error) error {
	var r *refusal
	var closed *network.ConnError
	var reset *network.StreamError
	switch {
	case errors.As(err, &r):
		return r
	case errors.Is(err, swarm.ErrGaterDisallowedConnection):
		return &refusal{ErrNotAllowed, "it is not on this node's allow list"}
	case errors.As(err, &reset) && reset.Remote && reset.ErrorCode == codeNotAllowed:
		return &refusal{ErrNotAllowed, "this node is not on its allow list"}
	case !errors.As(err, &closed) || !closed.Remote:
		return err
	case closed.ErrorCode == CodeSecret:
		return &refusal{ErrSecret, "it wants a secret that this node does not share"}
	case closed.ErrorCode == CodeNotAllowed:
		return &refusal{ErrNotAllowed, "this node is not on its allow list"}
	case closed.ErrorCode == network.ConnResourceLimitExceeded:
		return &refusal{ErrLimit, "it has no room for more connections"}
	}
	return err
}

// refused reports whether there is a refusal in the error.
func refused(err error) bool {
	var r *refusal
	return errors.As(refusalOf(err), &r)
}
