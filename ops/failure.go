package ops

import (
	"encoding/binary"
	"fmt"
)

// A failure is why a group refuses work from call at on: two ranks that
// disagree, or one that gave up.
type failure struct {
	at    uint64
	a, b  party         // who disagree, when abort is nil
	abort *AbortedError // who gave up
}

type party struct {
	rank int
	call Call
}

func disagree(at uint64, rankA int, a Call, rankB int, b Call) *failure {
	return &failure{at: at, a: party{rankA, a}, b: party{rankB, b}}
}

// Error is the failure as a context's cause.
func (f *failure) Error() string { return f.error(-1, f.b.call).Error() }

// error is the failure as a rank that issued ours sees it: of the two that
// disagree it is told the one that differs from itself, in the call of the same
// number if it can.
func (f *failure) error(self int, ours Call) error {
	if f.abort != nil {
		return f.abort
	}
	theirs := f.a
	differs := func(p party) bool { return p.rank != self && p.call != ours }
	if !differs(f.a) || f.a.call.Seq != ours.Seq && differs(f.b) {
		theirs = f.b
	}
	return &MismatchError{Rank: theirs.rank, Ours: ours, Theirs: theirs.call}
}

// The signals of a group; see mesh/SPEC.md.
const (
	signalAsk      = 1 // call
	signalMismatch = 2 // at, rank, call, rank, call
	signalAbort    = 3 // at, rank, call, reason

	partySize = 4 + callSize
	maxReason = MaxSignal - 1 - 8 - partySize
)

func encodeAsk(c Call) []byte {
	p := make([]byte, 1+callSize)
	p[0] = signalAsk
	c.put(p[1:])
	return p
}

func (f *failure) encode() []byte {
	p := binary.LittleEndian.AppendUint64([]byte{signalMismatch}, f.at)
	if f.abort == nil {
		return f.b.append(f.a.append(p))
	}
	p[0] = signalAbort
	p = party{f.abort.Rank, f.abort.Call}.append(p)
	return append(p, f.abort.Reason[:min(len(f.abort.Reason), maxReason)]...)
}

func (a party) append(p []byte) []byte {
	p = binary.LittleEndian.AppendUint32(p, uint32(a.rank))
	var c [callSize]byte
	a.call.put(c[:])
	return append(p, c[:]...)
}

// decodeSignal reads a signal of a group of n ranks: a question, or a failure.
func decodeSignal(p []byte, n int) (ask Call, f *failure, err error) {
	bad := fmt.Errorf("ops: malformed signal of %d bytes", len(p))
	if len(p) < 1+callSize || len(p) > MaxSignal {
		return Call{}, nil, bad
	}
	kind, p := p[0], p[1:]
	if kind == signalAsk && len(p) == callSize {
		return callOf(p), nil, nil
	}
	if len(p) < 8+partySize {
		return Call{}, nil, bad
	}
	f = &failure{at: binary.LittleEndian.Uint64(p)}
	var ok bool
	if f.a, ok = partyOf(p[8:], n); !ok {
		return Call{}, nil, bad
	}
	rest := p[8+partySize:]
	switch {
	case kind == signalAbort:
		f.abort = &AbortedError{Rank: f.a.rank, Call: f.a.call, Reason: string(rest)}
		return Call{}, f, nil
	case kind == signalMismatch && len(rest) == partySize:
		if f.b, ok = partyOf(rest, n); ok {
			return Call{}, f, nil
		}
	}
	return Call{}, nil, bad
}

func partyOf(p []byte, n int) (party, bool) {
	rank := binary.LittleEndian.Uint32(p)
	return party{int(rank), callOf(p[4:])}, rank < uint32(n)
}
