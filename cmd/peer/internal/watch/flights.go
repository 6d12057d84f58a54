package watch

import (
	"math/bits"
	"slices"
	"sync"
	"time"

	"peermesh/ops"
)

const (
	// maxFlights bounds the operations that are followed at once. A rank that has more
	// in flight loses sight of the oldest, whose end then counts for nothing.
	maxFlights = 512
	// maxKinds is above every ops.Kind.
	maxKinds = 32
	// buckets of an operation's time are powers of two of a microsecond, up to a minute.
	buckets = 27
)

// Flights is an ops.Observer that keeps what is in flight, and counts what has been.
// What it does for an operation takes three short locks and no memory.
type Flights struct {
	mu      sync.Mutex
	ring    [maxFlights]flight
	kinds   [maxKinds]kindCount
	moving  int           // operations that have started and not ended
	since   time.Time     // when the first of them did
	inside  time.Duration // with any of them under way, before since
	payload int64         // bytes of all that has ended
}

// A flight is an operation that has not ended; its id is zero if there is none.
type flight struct {
	id      uint64
	op      ops.Operation
	begun   time.Time
	started time.Time // zero: its turn has not come
}

// A kindCount is what is known of the operations of one kind that have ended.
type kindCount struct {
	count, failed, bytes int64
	time                 time.Duration // from start to end, all together
	spread               [buckets]uint64
}

var _ ops.Observer = (*Flights)(nil)

// Begin notes an operation.
func (f *Flights) Begin(o ops.Operation, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	// What it overwrites, if anything, has been in flight for maxFlights operations.
	if old := &f.ring[o.ID%maxFlights]; old.id != 0 && !old.started.IsZero() {
		f.rest(at)
	}
	f.ring[o.ID%maxFlights] = flight{id: o.ID, op: o, begun: at}
}

// Start notes that its turn has come.
func (f *Flights) Start(id uint64, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := &f.ring[id%maxFlights]; s.id == id {
		s.started = at
		if f.moving++; f.moving == 1 {
			f.since = at
		}
	}
}

// End counts it.
func (f *Flights) End(id uint64, at time.Time, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.ring[id%maxFlights]
	if s.id != id {
		return
	}
	s.id = 0
	f.rest(at)
	k := &f.kinds[int(s.op.Kind)%maxKinds]
	d := at.Sub(s.started)
	k.count++
	k.time += d
	k.spread[bucket(d)]++
	if err != nil {
		k.failed++
		return
	}
	k.bytes += s.op.Bytes
	f.payload += s.op.Bytes
}

// rest ends the time of an operation that had started. The lock is held.
func (f *Flights) rest(at time.Time) {
	if f.moving--; f.moving == 0 {
		f.inside += at.Sub(f.since)
	}
}

// bucket is where a duration belongs: in [2^(i-1), 2^i) µs.
func bucket(d time.Duration) int {
	return min(bits.Len64(uint64(max(d, 0)/time.Microsecond)), buckets-1)
}

// busy is for how long any operation has been under way.
func (f *Flights) busy(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.moving > 0 {
		return f.inside + now.Sub(f.since)
	}
	return f.inside
}

// A Flight is an operation in flight, for people.
type Flight struct {
	Op      string  `json:"op"`
	Group   uint32  `json:"group"`
	Ranks   int     `json:"ranks"`
	Peer    *int    `json:"peer,omitempty"` // of a message; −1 is any
	Bytes   int64   `json:"bytes"`
	Via     string  `json:"via,omitempty"` // the schedule
	Started bool    `json:"started"`       // or else it waits for its turn
	Seconds float64 `json:"seconds"`       // since it was issued

	id uint64
}

// open lists what is in flight, the oldest first.
func (f *Flights) open(now time.Time) []Flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := []Flight{}
	for i := range f.ring {
		s := &f.ring[i]
		if s.id == 0 {
			continue
		}
		one := Flight{Op: s.op.Call.String(), Group: s.op.Group, Ranks: s.op.Size, Bytes: s.op.Bytes, Via: s.op.Algorithm,
			Started: !s.started.IsZero(), Seconds: now.Sub(s.begun).Seconds(), id: s.id}
		if s.op.Kind == ops.KindSend {
			one.Peer = new(s.op.Peer)
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b Flight) int { return int(int64(a.id - b.id)) })
	return list
}

// oldest is the operation that has been in flight for longest, if there is one.
func (f *Flights) oldest() (o ops.Operation, begun time.Time, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var first *flight
	for i := range f.ring {
		if s := &f.ring[i]; s.id != 0 && (first == nil || s.id < first.id) {
			first = s
		}
	}
	if first == nil {
		return o, begun, false
	}
	return first.op, first.begun, true
}

// A Kind is what is known of the operations of one kind, for people.
type Kind struct {
	Kind   string  `json:"kind"`
	Count  int64   `json:"count"`
	Failed int64   `json:"failed"`
	Bytes  int64   `json:"bytes"`
	Mean   float64 `json:"mean"` // seconds

	seconds float64
	spread  [buckets]uint64
}

// counted lists the kinds of which there have been any.
func (f *Flights) counted() []Kind {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := []Kind{}
	for i := range f.kinds {
		k := &f.kinds[i]
		if k.count > 0 {
			list = append(list, Kind{ops.Kind(i).String(), k.count, k.failed, k.bytes,
				k.time.Seconds() / float64(k.count), k.time.Seconds(), k.spread})
		}
	}
	return list
}
