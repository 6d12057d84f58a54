package flight_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"peermesh/ops"
	"peermesh/ops/flight"
)

// TestTally follows two operations that overlap.
func TestTally(t *testing.T) {
	r := flight.New(8)
	r.Begin(operation(1), at(0))
	r.Begin(operation(2), at(1))
	r.Start(1, at(2))
	if open := r.InFlight(9); len(open) != 2 || open[0].Seq != 0 || !open[0].Started || !open[1].Begun.Equal(at(1)) || open[1].Started {
		t.Errorf("in flight: %+v", open)
	}
	if open := r.InFlight(1); len(open) != 1 || open[0].Seq != 1 {
		t.Errorf("the last in flight: %+v", open)
	}
	r.Start(2, at(4))
	r.End(1, at(10), nil)
	if d := r.Busy(at(11)); d != 9*time.Millisecond {
		t.Errorf("busy for %v so far", d)
	}
	r.End(2, at(12), errors.New("lost"))
	r.End(2, at(13), nil) // once is enough
	r.Start(9, at(13))    // and what was not begun is nothing
	r.End(9, at(13), nil)
	if d := r.Busy(at(20)); d != 10*time.Millisecond {
		t.Errorf("busy for %v", d)
	}
	want := flight.Count{Kind: ops.KindAllReduce, Ended: 2, Failed: 1, Bytes: 4096, Time: 16 * time.Millisecond}
	want.Spread[13] = 2 // from 4,096 to 8,192 µs
	if got := r.Counts(); !slices.Equal(got, []flight.Count{want}) {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if open := r.InFlight(9); len(open) != 0 {
		t.Errorf("in flight: %+v", open)
	}
}

// TestSpread has each time in its bucket, and what ends without a turn in none.
func TestSpread(t *testing.T) {
	r := flight.New(4)
	id := uint64(0)
	for d, want := range map[time.Duration]int{0: 0, 999: 0, time.Microsecond: 1, 2 * time.Microsecond: 2,
		3 * time.Microsecond: 2, time.Millisecond: 10, time.Hour: flight.Buckets - 1} {
		id++
		o := operation(id)
		o.Kind = ops.Kind(id) // of its own
		r.Begin(o, at(0))
		r.Start(id, at(0))
		r.End(id, at(0).Add(d), nil)
		counts := r.Counts()
		if got := slices.Index(counts[len(counts)-1].Spread[:], 1); got != want {
			t.Errorf("%v is in bucket %d, want %d", d, got, want)
		}
	}
	r = flight.New(4)
	r.Begin(operation(1), at(0))
	r.End(1, at(5), errors.New("the world had ended"))
	if c := r.Counts(); c[0].Ended != 1 || c[0].Failed != 1 || c[0].Spread != [flight.Buckets]uint64{} {
		t.Errorf("counted %+v", c[0])
	}
}

// TestInFlightIsBounded forgets what has been in flight for too many operations, and its
// time with it.
func TestInFlightIsBounded(t *testing.T) {
	const places = 8
	r := flight.New(places)
	for id := range uint64(3 * places) {
		r.Begin(operation(id+1), at(int(id)))
		r.Start(id+1, at(int(id)))
	}
	if open := r.InFlight(100); len(open) != places || open[0].Seq != 2*places {
		t.Errorf("in flight: %+v", open)
	}
	for id := range uint64(3 * places) {
		r.End(id+1, at(5000), nil)
	}
	if d, c := r.Busy(at(9000)), r.Counts(); d != 5*time.Second || c[0].Ended != places {
		t.Errorf("busy %v, counted %+v", d, c)
	}
}

// TestGroups has more groups than share what they have in common, each with its own.
func TestGroups(t *testing.T) {
	r := flight.New(0)
	r.Enter(flight.World{Epoch: 7, Size: 300})
	const n = 200
	for range 2 {
		for i := range uint64(n) {
			o := operation(1 + i)
			o.Group, o.Size, o.Members = uint32(i), int(i)+1, []int{int(i)}
			r.Begin(o, at(0))
		}
	}
	for i, o := range r.Records() {
		if want := uint32(i % n); o.Group != want || o.Size != int(want)+1 || o.Epoch != 7 {
			t.Fatalf("operation %d is of group %d, size %d, epoch %d", i, o.Group, o.Size, o.Epoch)
		}
	}
	if l := r.Log(flight.Reason{Lost: -1}); len(l.Groups) != n || l.Groups[5].Ranks[0] != 5 {
		t.Errorf("%d groups", len(l.Groups))
	}
}
