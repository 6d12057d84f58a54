package watch

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"peermesh/ops"
)

// How ranks tell each other how they do.
//
// A rank whose page is looked at asks the others once in a while, by a signal of one
// byte, and each answers with a report that fits a signal. Signals may be lost, which
// costs nothing: it is asked again. Nobody sends anything while nobody looks.
//
//	0   1  what it is: 1 question, 2 report
//	1   8  step, since the beginning
//	9   4  milliseconds that it has been in its world
//	13  4  of these, in operations
//	17  4  steps taken in this world
//	21  4  samples a second, float32
//	25  1  kind of the oldest operation in flight; 0 for none
//	26  8  its number
//	34  4  its age in milliseconds
//	38  2  the first rank that links are of
//	40  1  how many links follow
//	41  12 of each: round trip in µs, bytes sent and received a second in KiB, each in 4
//
// Numbers are little-endian, and stay at their largest when they would be larger.

// Channel is the channel of signals that reports go by: the last that no group can have.
const Channel = 1<<31 - 1

const (
	question, answer = 1, 2

	reportHead = 41
	linkSize   = 12
	// maxLinks bounds the links of one report, which is a signal. A larger world's take
	// turns.
	maxLinks = (ops.MaxSignal - reportHead) / linkSize
)

// A report is what a rank says of itself.
type report struct {
	Step    uint64
	Age     time.Duration // of its world
	Inside  time.Duration // of that, in operations
	Steps   uint32        // in this world
	Samples float32       // a second
	Kind    ops.Kind      // of the oldest operation in flight; 0: none
	Seq     uint64
	Waits   time.Duration // its age
	First   int           // rank of the first of the links
	Links   []linkReport
}

// A linkReport is what a rank knows of its link to another.
type linkReport struct {
	RTT            time.Duration
	Sent, Received float64 // bytes a second
}

// encode writes a report, of maxLinks links at most.
func (r *report) encode() []byte {
	le := binary.LittleEndian
	b := le.AppendUint64([]byte{answer}, r.Step)
	b = le.AppendUint32(b, capped(r.Age.Milliseconds()))
	b = le.AppendUint32(b, capped(r.Inside.Milliseconds()))
	b = le.AppendUint32(b, r.Steps)
	b = le.AppendUint32(b, math.Float32bits(r.Samples))
	b = le.AppendUint64(append(b, byte(r.Kind)), r.Seq)
	b = le.AppendUint32(b, capped(r.Waits.Milliseconds()))
	b = le.AppendUint16(b, uint16(r.First))
	b = append(b, byte(len(r.Links)))
	for _, l := range r.Links {
		b = le.AppendUint32(b, capped(l.RTT.Microseconds()))
		b = le.AppendUint32(b, capped(int64(l.Sent)>>10))
		b = le.AppendUint32(b, capped(int64(l.Received)>>10))
	}
	return b
}

func capped(n int64) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }

// decodeReport reads what a peer has sent, for a world of so many ranks.
func decodeReport(b []byte, ranks int) (*report, error) {
	if len(b) < reportHead || b[0] != answer {
		return nil, fmt.Errorf("watch: %d bytes are no report", len(b))
	}
	le := binary.LittleEndian
	ms := func(at int) time.Duration { return time.Duration(le.Uint32(b[at:])) * time.Millisecond }
	r := &report{Step: le.Uint64(b[1:]), Age: ms(9), Inside: ms(13), Steps: le.Uint32(b[17:]),
		Samples: math.Float32frombits(le.Uint32(b[21:])), Kind: ops.Kind(b[25]), Seq: le.Uint64(b[26:]), Waits: ms(34),
		First: int(le.Uint16(b[38:]))}
	n := int(b[40])
	switch {
	case len(b) != reportHead+n*linkSize:
		return nil, fmt.Errorf("watch: a report of %d links in %d bytes", n, len(b))
	case r.First+n > ranks:
		return nil, fmt.Errorf("watch: links to ranks %d to %d of a world of %d", r.First, r.First+n-1, ranks)
	case r.Samples < 0 || r.Samples > math.MaxFloat32 || r.Samples != r.Samples:
		return nil, fmt.Errorf("watch: %v samples a second", r.Samples)
	}
	for p := b[reportHead:]; len(p) > 0; p = p[linkSize:] {
		r.Links = append(r.Links, linkReport{time.Duration(le.Uint32(p)) * time.Microsecond,
			float64(le.Uint32(p[4:])) * 1024, float64(le.Uint32(p[8:])) * 1024})
	}
	return r, nil
}
