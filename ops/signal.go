package ops

import (
	"encoding/binary"
	"fmt"
)

// The signals of a group, on the channel of its ID: a byte that says which, and
// then these fields. Integers are little-endian; at and a rank have 8 and 4 bytes, a
// tag 4, a call 28, laid out as in a message's tag (mesh/SPEC.md). Ranks are those of
// the world.
const (
	signalAsk      = 1 // call: is this what you are in?
	signalMismatch = 2 // at, rank, call, rank, call
	signalAbort    = 3 // at, rank, call, reason
	signalMissing  = 4 // call, and a bit for each member that is missing
	signalRoll     = 5 // call: have you come to it?
	signalHere     = 6 // call: I have
	signalRefusal  = 7 // tag, call that was sent, call that received

	partySize = 4 + callSize
	maxReason = MaxSignal - 1 - 8 - partySize
	// maxMissing bounds the bits of signalMissing in bytes: of a larger group, only
	// the first 3,800 ranks can be named.
	maxMissing = MaxSignal - 1 - callSize
)

// A signal is what one rank of a group tells another past the lanes.
type signal struct {
	kind byte
	call Call     // of a question, an answer, or what was sent
	fail *failure // of mismatch, abort and missing
	tag  uint32   // of a refusal
	ours Call     // of a refusal: what received
}

func encodeCall(kind byte, c Call) []byte {
	p := make([]byte, 1+callSize)
	p[0] = kind
	c.put(p[1:])
	return p
}

func encodeRefusal(tag uint32, sent, received Call) []byte {
	p := make([]byte, 1+4+2*callSize)
	p[0] = signalRefusal
	binary.LittleEndian.PutUint32(p[1:], tag)
	sent.put(p[5:])
	received.put(p[5+callSize:])
	return p
}

// encode is the failure as a signal among these ranks.
func (f *failure) encode(members ranks) []byte {
	switch {
	case f.absent != nil:
		return append(encodeCall(signalMissing, f.absent.Call), bitmap(f.absent.Ranks, members)...)
	case f.abort != nil:
		p := binary.LittleEndian.AppendUint64([]byte{signalAbort}, f.at)
		p = party{f.abort.Rank, f.abort.Call}.append(p)
		return append(p, f.abort.Reason[:min(len(f.abort.Reason), maxReason)]...)
	}
	p := binary.LittleEndian.AppendUint64([]byte{signalMismatch}, f.at)
	return f.b.append(f.a.append(p))
}

func (a party) append(p []byte) []byte {
	p = binary.LittleEndian.AppendUint32(p, uint32(a.rank))
	var c [callSize]byte
	a.call.put(c[:])
	return append(p, c[:]...)
}

// bitmapSize is the length of a bit for each member, in bytes.
func bitmapSize(members ranks) int { return min((members.n+7)/8, maxMissing) }

func bitmap(some []int, members ranks) []byte {
	bits := make([]byte, bitmapSize(members))
	for _, rank := range some {
		if i, ok := members.local(rank); ok && i/8 < len(bits) {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	return bits
}

// decodeSignal reads what another rank of a group of these members sent.
func decodeSignal(p []byte, members ranks) (s signal, err error) {
	bad := fmt.Errorf("ops: malformed signal of %d bytes", len(p))
	if len(p) < 1+callSize || len(p) > MaxSignal {
		return signal{}, bad
	}
	s.kind, p = p[0], p[1:]
	ok := false
	switch s.kind {
	case signalAsk, signalRoll, signalHere:
		s.call, ok = callOf(p), len(p) == callSize
	case signalRefusal:
		if ok = len(p) == 4+2*callSize; ok {
			s.tag, s.call, s.ours = binary.LittleEndian.Uint32(p), callOf(p[4:]), callOf(p[4+callSize:])
		}
	case signalMissing:
		s.fail, ok = decodeMissing(callOf(p), p[callSize:], members)
	case signalMismatch, signalAbort:
		if len(p) >= 8+partySize {
			s.fail, ok = decodeFailure(s.kind, binary.LittleEndian.Uint64(p), p[8:], members)
		}
	}
	if !ok {
		return signal{}, bad
	}
	return s, nil
}

func decodeMissing(c Call, bits []byte, members ranks) (*failure, bool) {
	if len(bits) != bitmapSize(members) {
		return nil, false
	}
	e := &MissingError{Call: c}
	for i := range min(members.n, 8*len(bits)) {
		if bits[i/8]&(1<<(i%8)) != 0 {
			e.Ranks = append(e.Ranks, members.world(i))
		}
	}
	return &failure{at: c.Seq, absent: e}, len(e.Ranks) > 0
}

// decodeFailure reads a party, and then another or a reason. p has the first.
func decodeFailure(kind byte, at uint64, p []byte, members ranks) (*failure, bool) {
	first, ok := partyOf(p, members)
	if !ok {
		return nil, false
	}
	p = p[partySize:]
	if kind == signalAbort {
		return &failure{at: at, a: first, abort: &AbortedError{Rank: first.rank, Call: first.call, Reason: string(p)}}, true
	}
	if len(p) != partySize {
		return nil, false
	}
	second, ok := partyOf(p, members)
	return disagree(at, first.rank, first.call, second.rank, second.call), ok
}

func partyOf(p []byte, members ranks) (party, bool) {
	rank := int(binary.LittleEndian.Uint32(p))
	_, ok := members.local(rank)
	return party{rank, callOf(p[4:])}, ok
}
