package flight

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"peermesh/ops"
)

// A State is how far an operation has come on its rank.
type State string

// The states.
const (
	Scheduled State = "scheduled" // it has its place in the order
	Started   State = "started"   // it moves data, or waits for it
	Done      State = "done"
	Failed    State = "failed"
)

// A Record is one operation of one rank, as ops.Operation tells of it.
type Record struct {
	ID        uint64 `json:"id"`    // in the order of issue in this process
	Epoch     uint64 `json:"epoch"` // which world
	Group     uint32 `json:"group"` // 0 is the world's own
	Size      int    `json:"size"`  // of the group, in ranks
	Seq       uint64 `json:"seq"`   // in the group; of messages: with that peer, under that tag
	Call      string `json:"call"`  // all of it, for a person
	Kind      string `json:"kind"`
	DType     string `json:"dtype"`
	Op        string `json:"op"`    // where it reduces
	Count     uint64 `json:"count"` // elements
	Root      int32  `json:"root"`  // −1: none
	Digest    uint32 `json:"digest"`
	Bytes     int64  `json:"bytes"`
	Algorithm string `json:"algorithm,omitempty"`
	Peer      int    `json:"peer"` // of a message; −1: none, or any
	Tag       uint32 `json:"tag,omitempty"`
	Send      bool   `json:"send,omitempty"`
	State     State  `json:"state"`
	Begun     int64  `json:"begun"` // ns since 1970, as the two below; 0: not yet
	Started   int64  `json:"started,omitempty"`
	Ended     int64  `json:"ended,omitempty"`
	Error     string `json:"error,omitempty"`
}

// message reports whether the record is of a send or a receive.
func (r *Record) message() bool { return r.Kind == ops.KindSend.String() }

// open reports whether the operation has not ended.
func (r *Record) open() bool { return r.State == Scheduled || r.State == Started }

// took is how long it was at work; zero if it never was, or still is.
func (r *Record) took() time.Duration {
	if r.Started == 0 || r.Ended == 0 {
		return 0
	}
	return time.Duration(r.Ended - r.Started)
}

// ownCounts are the operations in which each rank has a Count of its own.
var ownCounts = map[string]bool{
	ops.KindGatherList.String(): true, ops.KindScatterList.String(): true, ops.KindAllToAllV.String(): true,
}

// same reports whether two ranks' records can be of one operation, whatever its number.
func (r *Record) same(o *Record) bool {
	return r.Kind == o.Kind && r.DType == o.DType && r.Op == o.Op && r.Root == o.Root && r.Digest == o.Digest &&
		(r.Count == o.Count || ownCounts[r.Kind])
}

// name is the call as a sentence names it: with the group, unless it is the world's.
func (r *Record) name() string {
	switch {
	case r.message() && r.Send:
		return fmt.Sprintf("send #%d to rank %d", r.Seq, r.Peer)
	case r.message() && r.Peer < 0:
		return "receive from any rank"
	case r.message():
		return fmt.Sprintf("receive #%d from rank %d", r.Seq, r.Peer)
	case r.Group != 0:
		return fmt.Sprintf("%s of group %08x", r.Call, r.Group)
	}
	return r.Call
}

const (
	// maxError bounds what is kept of an error's text, in bytes, maxText any other.
	maxError = 512
	maxText  = 128
)

// clean is a text as it may be shown on a terminal, cut to n bytes.
func clean(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
}
