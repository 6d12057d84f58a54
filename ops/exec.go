package ops

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
)

// inline is how many bytes a rank may send to one peer in a round without a
// goroutine to send them: less than the window of any lane, so that the send
// cannot wait for a receive of the same round.
const inline = 64 << 10

// A run is one rank's part of one collective: the rounds of a schedule over a
// tensor, on every lane at once.
type run struct {
	t      Transport
	ranks  ranks              // for errors
	lane   func(i int) uint64 // of the transport
	call   Call
	rounds []schedule.Round // this rank's
	layout layout
	op     tensor.Op

	waits []atomic.Int32 // receives that wait, by rank
}

// do runs the lanes side by side. The first that fails takes the others along.
func (r *run) do(ctx context.Context) error {
	if r.layout.lanes == 1 {
		return r.runLane(ctx, 0)
	}
	return together(ctx, r.layout.lanes, r.runLane)
}

// runLane goes through the rounds in order: a lane is sequential, which is what
// lets a frame's tag be compared with the only possible one.
func (r *run) runLane(ctx context.Context, lane int) error {
	for i, round := range r.rounds {
		if len(round) == 0 {
			continue
		}
		if err := r.round(ctx, lane, i, round); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
	}
	return nil
}

// move carries one move's part of a lane. With late, what comes in is put there
// rather than landed.
func (r *run) move(ctx context.Context, lane, round int, m schedule.Move, late []byte) error {
	tag := r.call.tag(round, m.Dst, m.N)
	if m.From == r.t.Rank() {
		n := r.layout.bytes(lane, m.Src, m.N)
		if err := r.t.Send(ctx, m.To, r.lane(lane), tag, n, r.layout.read(lane, m.Src, m.N)); err != nil {
			return fmt.Errorf("to rank %d: %w", r.ranks.world(m.To), err)
		}
		return nil
	}
	want := r.layout.bytes(lane, m.Dst, m.N)
	land := r.layout.write(lane, m, r.op)
	if late != nil {
		rest := late
		land = func(p []byte) error { rest = rest[copy(rest, p):]; return nil }
	}
	r.waits[m.From].Add(1)
	defer r.waits[m.From].Add(-1)
	err := r.t.Recv(ctx, m.From, r.lane(lane), func(got Tag, n int64) error {
		if got != tag || n != want {
			return &strayError{from: m.From, tag: got, n: n, want: want}
		}
		return nil
	}, land)
	if err != nil {
		return fmt.Errorf("from rank %d: %w", r.ranks.world(m.From), err)
	}
	return nil
}

// A strayError is a message that is not the one expected: the ranks disagree.
type strayError struct {
	from    int
	tag     Tag
	n, want int64
}

func (e *strayError) Error() string {
	return fmt.Sprintf("message of %d bytes for %v, %d bytes expected", e.n, callOf(e.tag[:]), e.want)
}

// together runs f(0) … f(n−1) at once and waits for all. The first error ends
// the others' context and is returned.
func together(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	if n == 0 {
		return nil
	}
	if n == 1 {
		return f(ctx, 0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		wg    sync.WaitGroup
		once  sync.Once
		first error
	)
	try := func(i int) {
		if err := f(ctx, i); err != nil {
			once.Do(func() { first = err; cancel(err) })
		}
	}
	for i := range n - 1 {
		wg.Go(func() { try(i) })
	}
	try(n - 1)
	wg.Wait()
	return first
}
