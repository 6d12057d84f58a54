package ops

import (
	"encoding/binary"
	"fmt"

	"peermesh/ops/tensor"
)

// A Kind is an operation of a group. Its number is on the wire.
type Kind uint8

// The operations.
const (
	KindRun           Kind = 1 // a caller's own schedule
	KindAllReduce     Kind = 2
	KindBroadcast     Kind = 3
	KindReduce        Kind = 4
	KindAllGather     Kind = 5
	KindReduceScatter Kind = 6
	KindBarrier       Kind = 7
	KindSend          Kind = 8
	KindSplit         Kind = 9 // Split and its like: their Digest has who goes where

	KindMonitoredBarrier Kind = 10 // Count is 1 if all that are missing are named

	KindGather   Kind = 11 // Count is of all ranks' parts
	KindScatter  Kind = 12 // likewise
	KindAllToAll Kind = 13

	// In these a rank does not know all counts; Count is of what it knows.
	KindGatherList  Kind = 14
	KindScatterList Kind = 15
	KindAllToAllV   Kind = 16

	// Objects have no element type, and no count that is known when they are issued.
	KindBroadcastObject Kind = 17
	KindScatterObject   Kind = 18
	KindGatherObject    Kind = 19
	KindAllGatherObject Kind = 20

	KindMeasure Kind = 21

	KindAllReduceCoded Kind = 22 // its Digest has the codec
)

var kindNames = map[Kind]string{
	KindRun: "run", KindAllReduce: "all_reduce", KindBroadcast: "broadcast", KindReduce: "reduce",
	KindAllGather: "all_gather", KindReduceScatter: "reduce_scatter", KindBarrier: "barrier", KindSend: "send",
	KindSplit: "split", KindMonitoredBarrier: "monitored_barrier",
	KindGather: "gather", KindScatter: "scatter", KindAllToAll: "all_to_all", KindMeasure: "measure",
	KindGatherList: "gather_list", KindScatterList: "scatter_list", KindAllToAllV: "all_to_all_v",
	KindBroadcastObject: "broadcast_object", KindScatterObject: "scatter_object",
	KindGatherObject: "gather_object", KindAllGatherObject: "all_gather_object",
	KindAllReduceCoded: "all_reduce_coded",
}

// String is torch.distributed's name of the operation.
func (k Kind) String() string {
	if s, ok := kindNames[k]; ok {
		return s
	}
	return fmt.Sprintf("operation(%d)", uint8(k))
}

// ownCounts reports whether a call's Count is each rank's own. Its messages carry
// their own counts instead, which sender and receiver compare.
func (k Kind) ownCounts() bool { return k >= KindGatherList && k <= KindAllToAllV }

// noRoot is the Root of a call that has none.
const noRoot = -1

// A Call is what every rank must agree on when it issues an operation. It
// travels in the tag of each message, so that a rank that disagrees is found by
// the first message, and named.
type Call struct {
	Seq    uint64 // place in the group's order of issue, from 0
	Kind   Kind
	DType  tensor.DType
	Op     tensor.OpCode // meaningful where the operation reduces
	Count  uint64        // elements
	Root   int32         // source or destination, by its rank in the world; −1 where there is none
	Digest uint32        // of the schedule, how it is laid out, the op, and the codec
}

// String is the call as a person reads it: all_reduce #17 (float32 × 1024, sum).
func (c Call) String() string {
	s := fmt.Sprintf("%v #%d", c.Kind, c.Seq)
	switch c.Kind {
	case KindBarrier, KindMeasure, KindAllGatherObject:
		return s
	case KindBroadcastObject, KindScatterObject, KindGatherObject:
		return s + fmt.Sprintf(" (root %d)", c.Root)
	case KindMonitoredBarrier:
		if c.Count > 0 {
			s += " (all)"
		}
		return s
	case KindSplit:
		return s + fmt.Sprintf(" (plan %08x)", c.Digest)
	}
	s += fmt.Sprintf(" (%v × %d", c.DType, c.Count)
	switch c.Kind {
	case KindAllReduce, KindAllReduceCoded, KindReduce, KindReduceScatter, KindRun:
		s += fmt.Sprintf(", %v", c.Op)
	}
	if c.Root != noRoot {
		s += fmt.Sprintf(", root %d", c.Root)
	}
	return s + ")"
}

// agrees reports whether two ranks' calls of one number can be one operation.
func (c Call) agrees(d Call) bool {
	if c.Kind.ownCounts() {
		c.Count = d.Count
	}
	return c == d
}

// differs says in one word or two what sets two calls of one number apart, for
// calls that print alike.
func (c Call) differs(d Call) string {
	if c.Digest != d.Digest && c.String() == d.String() {
		return " with another schedule, function, codec or sizes"
	}
	return ""
}

// callSize is the length of an encoded call; see mesh/SPEC.md.
const callSize = 28

func (c Call) put(b []byte) {
	binary.LittleEndian.PutUint64(b[0:], c.Seq)
	binary.LittleEndian.PutUint64(b[8:], c.Count)
	b[16], b[17], b[18], b[19] = byte(c.Kind), byte(c.DType), byte(c.Op), 0
	binary.LittleEndian.PutUint32(b[20:], uint32(c.Root))
	binary.LittleEndian.PutUint32(b[24:], c.Digest)
}

func callOf(b []byte) Call {
	return Call{
		Seq: binary.LittleEndian.Uint64(b[0:]), Count: binary.LittleEndian.Uint64(b[8:]),
		Kind: Kind(b[16]), DType: tensor.DType(b[17]), Op: tensor.OpCode(b[18]),
		Root: int32(binary.LittleEndian.Uint32(b[20:])), Digest: binary.LittleEndian.Uint32(b[24:]),
	}
}

// tag is the tag of the call's message that carries chunks [chunk, chunk+n) in
// a round.
func (c Call) tag(round, chunk, n int) (t Tag) {
	c.put(t[:callSize])
	binary.LittleEndian.PutUint32(t[28:], uint32(round))
	binary.LittleEndian.PutUint32(t[32:], uint32(chunk))
	binary.LittleEndian.PutUint32(t[36:], uint32(n))
	return t
}
