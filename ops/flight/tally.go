package flight

import (
	"math/bits"
	"slices"
	"time"

	"peermesh/ops"
)

const (
	// Buckets is how many a Count has for the operations' times: powers of two of a
	// microsecond, up to a minute.
	Buckets = 27
	// maxKinds is above every ops.Kind.
	maxKinds = 32
)

// A Count is what is known of the operations of one kind that have ended, over all
// worlds.
type Count struct {
	Kind          ops.Kind
	Ended, Failed int64
	Bytes         int64         // of those that have not failed
	Time          time.Duration // from start to end, all together
	// Spread is how many took less than 1 µs, from there to less than 2 µs, to less than
	// 4 µs and so on; the last has all that took longer.
	Spread [Buckets]uint64
}

// A tally is what a Recorder counts, under its lock.
type tally struct {
	moving int           // operations that have started and not ended
	since  time.Duration // when the first of them did, on the Recorder's clock
	inside time.Duration // with any of them under way, before since
	kinds  [maxKinds]Count
}

// stir begins the time of an operation.
func (t *tally) stir(at time.Duration) {
	if t.moving++; t.moving == 1 {
		t.since = at
	}
}

// rest ends the time of an operation that had started.
func (t *tally) rest(at time.Duration) {
	if t.moving--; t.moving == 0 {
		t.inside += at - t.since
	}
}

// count counts an operation that has just ended.
func (t *tally) count(p *place, err error) {
	k := &t.kinds[p.call.Kind%maxKinds]
	k.Ended++
	if p.ran {
		t.rest(p.ended)
		d := p.ended - p.started
		k.Time += d
		k.Spread[bucket(d)]++
	}
	if err != nil {
		k.Failed++
		return
	}
	k.Bytes += p.bytes
}

// bucket is where a duration belongs: in [2^(i-1), 2^i) µs.
func bucket(d time.Duration) int {
	return min(bits.Len64(uint64(max(d, 0)/time.Microsecond)), Buckets-1)
}

// Counts are those of the kinds of which any operation has ended, by kind.
func (r *Recorder) Counts() (all []Count) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.kinds {
		if k := r.kinds[i]; k.Ended > 0 {
			k.Kind = ops.Kind(i)
			all = append(all, k)
		}
	}
	return all
}

// Busy is for how long any operation has been under way, up to now. What a rank does
// besides takes the rest of its time.
func (r *Recorder) Busy(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.moving > 0 {
		return r.inside + now.Sub(r.zero) - r.since
	}
	return r.inside
}

// A Flight is an operation that has not ended.
type Flight struct {
	ops.Call
	Group     uint32
	Size      int // of the group, in ranks
	Bytes     int64
	Algorithm string
	Peer      int // of a message; −1: none, or any
	Begun     time.Time
	Started   bool // or else its turn has not come
}

// InFlight are the operations that have not ended, the oldest first: those that a
// Recorder still keeps, and of them at most so many of the last.
func (r *Recorder) InFlight(most int) (all []Flight) {
	r.mu.Lock()
	left, i, last := min(r.open, most), r.head, r.last
	r.mu.Unlock()
	// The latest first, since what has not ended has mostly just begun.
	for n := len(r.places); left > 0 && n > 0; n, i = n-1, i-1 {
		if i < 0 {
			i += len(r.places)
		}
		// Behind the oldest place are by now those that have begun meanwhile.
		if p, _ := r.copied(i); p.id <= last && p.underway() {
			all = append(all, Flight{p.call, p.group.id, p.group.size, p.bytes, p.algorithm, int(p.peer), r.zero.Add(p.begun), p.ran})
			left--
		}
	}
	slices.Reverse(all)
	return all
}
