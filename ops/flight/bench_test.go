package flight_test

import (
	"slices"
	"testing"
	"time"

	"peermesh/ops"
	"peermesh/ops/flight"
)

// BenchmarkRecorder is what the three calls of an operation take, and of 64 operations
// in a row the fastest: that others run on the machine shows in the mean only.
func BenchmarkRecorder(b *testing.B) {
	const block = 64
	r := flight.New(0)
	var o ops.Observer = r // as a group calls it
	now, fastest := time.Now(), time.Hour
	one := operation(1)
	b.ReportAllocs()
	for b.Loop() {
		begin := time.Now()
		for range block {
			id := o.Begin(one, now)
			o.Start(id, now)
			o.End(id, now, nil)
		}
		fastest = min(fastest, time.Since(begin))
	}
	b.ReportMetric(float64(fastest)/block, "fastest-ns")
}

// BenchmarkRecorderCold is what they take after 64 KiB have been reduced, which leaves
// little of the Recorder in the nearest cache: what was sent, what came, and a ring between
// two processes have gone through it. Of 64 operations the median counts, of blocks of them
// the fastest; what it takes to look at the clock is taken off.
func BenchmarkRecorderCold(b *testing.B) {
	const block, size = 64, 64 << 10
	var o ops.Observer = flight.New(0)
	now, one := time.Now(), operation(1)
	send, came, ring := make([]uint64, size/8), make([]uint64, size/8), make([]uint64, size/8)
	took := make([]time.Duration, block)
	median := func(do func()) time.Duration {
		for i := range took {
			for j, x := range send {
				ring[j] = x
				came[j] += ring[j]
			}
			begin := time.Now()
			do()
			took[i] = time.Since(begin)
		}
		slices.Sort(took)
		return took[block/2]
	}
	fastest, clock := time.Hour, time.Hour
	for b.Loop() {
		clock = min(clock, median(func() {}))
		fastest = min(fastest, median(func() {
			id := o.Begin(one, now)
			o.Start(id, now)
			o.End(id, now, nil)
		}))
	}
	b.ReportMetric(float64(fastest-clock), "cold-ns")
	b.ReportMetric(float64(clock), "clock-ns")
}
