package mesh

import (
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/peer"

	"peermesh/node"
)

// Why a member is at fault for the end of a world. An EndedError wraps one of
// these, or an error that a rank gave to End.
var (
	// ErrLost: the member's control stream broke: its process died, or the
	// connection to it did.
	ErrLost = errors.New("connection lost")
	// ErrSilent: nothing was heard of the member for too long.
	ErrSilent = errors.New("silent")
	// ErrLeft: the member had left, and somebody still needed it.
	ErrLeft = errors.New("has left")
	// ErrClosed: the member closed its mesh without leaving.
	ErrClosed = errors.New("closed")
	// ErrAbsent: the member was to take part but never linked up.
	ErrAbsent = errors.New("did not link up")
	// ErrGrow is no fault: a rank ended the world so that those who wait for a
	// place (Mesh.Waiting) can take part in the next one.
	ErrGrow = errors.New("others wait to be let in")
)

// ErrNoWorld is what World returns when none formed in Config.Wait.
var ErrNoWorld = errors.New("mesh: no world formed")

// causes gives each sentinel its value on the wire, so that errors.Is holds on
// every rank. Zero is an error that travels as text alone. Never renumbered.
var causes = []error{1: ErrLost, 2: ErrSilent, 3: ErrLeft, 4: ErrClosed, 5: ErrAbsent, 6: node.ErrViolation, 7: ErrGrow}

func causeOf(err error) uint8 {
	for i, c := range causes {
		if c != nil && errors.Is(err, c) {
			return uint8(i)
		}
	}
	return 0
}

// A LeftError is the end of a receive that can do without the rank that it was from,
// which has left: see World.Recv. The world goes on.
type LeftError struct {
	Rank int
	Peer peer.ID
}

func (e *LeftError) Error() string {
	return fmt.Sprintf("mesh: rank %d (%s) %v", e.Rank, e.Peer, ErrLeft)
}

// Unwrap is ErrLeft.
func (e *LeftError) Unwrap() error { return ErrLeft }

// Left tells this error from others to those who do not know the type.
func (e *LeftError) Left() {}

// EndedError is why a world ended, the same on every rank: the first fault that
// anyone noticed. Every method of the World returns it from then on.
type EndedError struct {
	Epoch uint64
	Rank  int     // the rank at fault
	Peer  peer.ID // that rank's peer
	Err   error
}

func (e *EndedError) Error() string {
	return fmt.Sprintf("mesh: world %d ended: rank %d (%s): %v", e.Epoch, e.Rank, e.Peer, e.Err)
}

func (e *EndedError) Unwrap() error { return e.Err }

// Why a peer refuses another. A RefusedError wraps one of these, or node.ErrSecret or
// node.ErrNotAllowed.
var (
	ErrVersion = errors.New("another version of Peermesh")
	ErrName    = errors.New("another mesh")
	ErrSize    = errors.New("a world of another size")
	ErrTerms   = errors.New("other terms")
	ErrFull    = errors.New("the world is complete")
	ErrTwin    = errors.New("another process has this identity")
)

// refusals are the codes of answers that are final.
var refusals = map[uint8]error{refuseVersion: ErrVersion, refuseName: ErrName, refuseSize: ErrSize,
	refuseTerms: ErrTerms, refuseFull: ErrFull, refuseIdentity: ErrTwin}

// RefusedError is what World returns when a peer of the mesh will not have this
// one. Asking again is of no use.
type RefusedError struct {
	Peer   peer.ID // who refuses
	Reason string  // in that peer's words
	Err    error   // what kind of reason it is; nil: a kind that this version does not know
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("mesh: refused by %s: %s", e.Peer, e.Reason)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// remoteError is an error of another rank: its text, and its sentinel if it has
// one.
type remoteError struct {
	text  string
	cause error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.cause }
