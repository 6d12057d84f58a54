package ops

import (
	"context"
	"errors"
	"iter"
)

// TagSize is the length of a message's tag in bytes: what SPEC.md calls the call.
const TagSize = 40

// Tag names one message of one operation. A transport carries it unread.
type Tag = [TagSize]byte

// MaxSignal bounds a signal's payload in bytes.
const MaxSignal = 512

// A Transport is what a Group needs of a world: authenticated, ordered,
// flow-controlled lanes between every two ranks, and small signals beside
// them. mesh.World and memnet.World have it; both are held to it by
// testnet/conform.
//
// Every method may be called from any goroutine. An error that ends the world
// is the cause of Context, and every method returns it from then on.
type Transport interface {
	// Rank is this process's place in [0, Size).
	Rank() int
	// Size is the number of ranks.
	Size() int

	// Context ends when the world does; context.Cause says why.
	Context() context.Context
	// End ends the world on every rank, for this cause. Only the first counts.
	End(cause error)

	// Send writes one message to a rank's lane: tag, then n bytes drawn from
	// parts, which must yield exactly n. A yielded slice is not kept after the
	// next is asked for. Messages of one (to, lane) leave in the order of the
	// calls, and Send returns when the last slice may be used again. It blocks
	// while the receiver is a window behind. A ctx that ends in mid-message
	// breaks the lane: later calls on it fail.
	Send(ctx context.Context, to int, lane uint64, tag Tag, n int64, parts iter.Seq2[[]byte, error]) error

	// Recv takes the next message of a rank's lane. accept sees its tag and
	// length before any payload is read; when it returns an error, Recv returns
	// that error and the message stays, unread, for the next Recv of the lane.
	// land gets the payload in order, in pieces lent by the transport until it
	// returns; every piece but the last is a multiple of 16 bytes. An error of
	// land breaks the lane. At most one Recv a lane may run at a time.
	//
	// A receive from a rank that has left the world, where ranks can leave, ends it:
	// that rank was needed. With a Spare as ctx it does not, and Recv's error has a
	// method Left.
	Recv(ctx context.Context, from int, lane uint64, accept func(tag Tag, n int64) error, land func(p []byte) error) error

	// Signal sends a few bytes (at most MaxSignal) to a rank, past all lanes. It
	// may be dropped when the receiver has no handler for the channel or is far
	// behind, never reordered or changed. It does not block.
	Signal(to int, channel uint32, p []byte) error
	// OnSignal sets the handler of a channel's signals; nil removes it. The
	// handler must not block. A slice is lent until it returns.
	OnSignal(channel uint32, f func(from int, p []byte))
}

// ahead is the longest message that a transport is certain to take before the receiver
// is there. That is what a method Ahead says, if a transport has it.
func ahead(t Transport, to int, lane uint64) int64 {
	if a, ok := t.(interface {
		Ahead(to int, lane uint64) int64
	}); ok {
		return a.Ahead(to, lane)
	}
	return 0
}

// Spare is the context of a receive that can do without the rank that it is from, as
// others may send as well. A Transport whose ranks can leave looks for the method.
type Spare struct{ context.Context }

// Spare says that the receive can do without the rank.
func (Spare) Spare() {}

// hasLeft reports whether a receive with a Spare ended because its rank has left.
func hasLeft(err error) bool {
	var left interface {
		error
		Left()
	}
	return errors.As(err, &left)
}
