package watch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"peermesh/ops"
	"peermesh/ops/flight"
	"peermesh/ops/tensor"
)

// A fakeWorld is a world of ranks that are not there: it answers for them.
type fakeWorld struct {
	epoch      uint64
	rank, size int
	mute       map[int]bool // ranks that do not answer

	mu    sync.Mutex
	hear  func(from int, p []byte)
	asked int
	begun time.Time
}

func newFake(rank, size int) *fakeWorld {
	return &fakeWorld{epoch: 1, rank: rank, size: size, mute: make(map[int]bool), begun: time.Now()}
}

func (w *fakeWorld) Epoch() uint64            { return w.epoch }
func (w *fakeWorld) Rank() int                { return w.rank }
func (w *fakeWorld) Size() int                { return w.size }
func (w *fakeWorld) Context() context.Context { return context.Background() }
func (w *fakeWorld) RTT(rank int) time.Duration {
	if rank == w.rank {
		return 0
	}
	return trip(w.rank, rank)
}

// trip is as between four sites, whose ranks are neighbours.
func trip(a, b int) time.Duration {
	if a/16 == b/16 {
		return time.Duration(80+(7*a+13*b)%90) * time.Microsecond
	}
	return time.Duration(9+3*(a/16+b/16)) * time.Millisecond
}

func (w *fakeWorld) Traffic(rank int) (sent, received int64) {
	if d := rank - w.rank; d != 1 && d != -1 {
		return 0, 0
	}
	n := int64(time.Since(w.begun).Seconds() * 40e6)
	return n, n * 9 / 10
}

func (w *fakeWorld) OnSignal(channel uint32, f func(from int, p []byte)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hear = f
}

// Signal has the rank answer at once.
func (w *fakeWorld) Signal(to int, channel uint32, p []byte) error {
	w.mu.Lock()
	hear := w.hear
	w.asked++
	w.mu.Unlock()
	switch {
	case channel != Channel || len(p) > ops.MaxSignal:
		return errors.New("no such signal")
	case w.mute[to] || hear == nil || len(p) != 1:
		return nil
	}
	hear(to, w.report(to).encode())
	return nil
}

// report is a rank's: one of 21 works twice as long as the others.
func (w *fakeWorld) report(rank int) *report {
	age := time.Since(w.begun) + time.Minute
	steps := uint32(age / (100 * time.Millisecond))
	r := &report{Step: uint64(steps), Age: age, Inside: age * 6 / 10, Steps: steps, Samples: 100, Kind: ops.KindAllReduce, Seq: uint64(steps), Waits: time.Second / 100}
	if rank%21 == 20 {
		r.Inside = age / 10
	}
	first := (int(steps) % 2) * maxLinks
	for r.First = min(first, w.size-1); len(r.Links) < maxLinks && r.First+len(r.Links) < w.size; {
		to := r.First + len(r.Links)
		l := linkReport{}
		if to != rank {
			l.RTT = trip(rank, to)
		}
		if to == (rank+1)%w.size {
			l.Sent, l.Received = 40e6, 30e6*(1+float64(rank%3))
		}
		r.Links = append(r.Links, l)
	}
	return r
}

func peerName(epoch uint64) func(rank int) string {
	return func(rank int) string { return fmt.Sprintf("12D3KooW%dAbCdEfGh%04d", epoch, rank) }
}

// place is the world with what surrounds it.
func (w *fakeWorld) place() Place {
	return Place{World: w, Peer: peerName(1), Relayed: func(rank int) bool { return rank%8 == 5 },
		Capacity: func(from, to int) float64 { return 1e9 / float64(trip(from, to)/time.Microsecond) * 100 }}
}

// fakeBoard is one in the midst of a training.
func fakeBoard(size int) (*Board, *fakeWorld) {
	r := flight.New(0)
	b := New(Config{Title: "convnet", Wanted: size + 1, Recorder: r})
	clock := time.Now().Add(-50 * time.Second)
	b.now = func() time.Time { return clock }
	first, w := newFake(0, size+1), newFake(0, size)
	b.Enter(first.place())
	b.Exit(errors.New("connection lost"), size)
	w.epoch = 2
	b.Enter(w.place())
	b.Began("convnet", 3, 1407)
	for step := 1; step <= 900; step++ {
		clock = clock.Add(time.Duration(50+step%7) * time.Millisecond)
		b.Step(1+step/469, step, 128, 2.3*math.Exp(-float64(step)/160)+0.08+0.02*math.Sin(float64(step)/3))
		if step%469 == 0 {
			b.Epoch(step/469, step, 0.23)
			b.Tested(step, 0.9731)
		}
	}
	b.now = time.Now
	for i := range uint64(3) {
		o := ops.Operation{Call: ops.Call{Kind: ops.KindAllReduce, DType: tensor.Float32, Count: 1 << 14, Root: -1, Seq: 900 + i}, Size: size, Bytes: 64 << 10, Algorithm: "ring", Peer: -1}
		r.Begin(o, time.Now())
	}
	r.Start(1, time.Now())
	r.End(1, time.Now().Add(300*time.Microsecond), nil)
	r.Start(2, time.Now())
	return b, w
}

// questions is how often ranks were asked.
func (w *fakeWorld) questions() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}
