package ops

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"peermesh/ops/tensor"
)

// inline is how many bytes a rank may send to one peer in a round without a
// goroutine to send them: less than the window of any lane, so that the send
// cannot wait for a receive of the same round.
const inline = 64 << 10

// A run is one rank's part of one collective: the rounds of a schedule over a
// tensor, on every lane at once.
//
// Most collectives change one tensor in place: what a move lands on, a later move
// may send on. Where nothing is sent on, a run may read from one tensor and land
// in another.
type run struct {
	t      Transport
	ranks  ranks              // for errors
	lane   func(i int) uint64 // of the transport
	call   Call
	rounds []round
	first  int                             // number of the first of them in the call
	src    layout                          // where moves read
	dst    layout                          // where they land
	apart  bool                            // src and dst share no memory
	before func(ctx context.Context) error // what comes before the rounds; nil: nothing
	op     tensor.Op

	waits []atomic.Int32 // receives that wait, by rank
}

// over has the run read and land in one place.
func (r *run) over(l layout) { r.src, r.dst, r.apart = l, l, false }

// across has the run read in one place and land in another.
func (r *run) across(src, dst layout) { r.src, r.dst, r.apart = src, dst, true }

// do runs the lanes side by side. The first that fails takes the others along.
func (r *run) do(ctx context.Context) error {
	if r.before != nil {
		if err := r.before(ctx); err != nil {
			return err
		}
	}
	if r.dst.lanes == 1 {
		return r.runLane(ctx, 0)
	}
	return together(ctx, r.dst.lanes, r.runLane)
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

// exchange sends or receives what a talk has for a lane, as one message.
func (r *run) exchange(ctx context.Context, lane, round int, t talk, held [][]byte) error {
	if t.send {
		return r.send(ctx, lane, round, t)
	}
	return r.recv(ctx, lane, round, t, held)
}

func (r *run) send(ctx context.Context, lane, round int, t talk) error {
	parts := func(yield func([]byte, error) bool) {
		for _, m := range t.moves {
			for p, err := range r.src.read(lane, m.Src, m.N) {
				if !yield(p, err) {
					return
				}
			}
		}
	}
	if err := r.t.Send(ctx, t.peer, r.lane(lane), r.tag(round, t), r.size(lane, t), parts); err != nil {
		return fmt.Errorf("to rank %d: %w", r.ranks.world(t.peer), err)
	}
	return nil
}

func (r *run) recv(ctx context.Context, lane, round int, t talk, held [][]byte) error {
	tag, want := r.tag(round, t), r.size(lane, t)
	r.waits[t.peer].Add(1)
	defer r.waits[t.peer].Add(-1)
	err := r.t.Recv(ctx, t.peer, r.lane(lane), func(got Tag, n int64) error {
		if got != tag || n != want {
			return &strayError{from: t.peer, ours: callOf(tag[:]), theirs: callOf(got[:]), n: n, want: want}
		}
		return nil
	}, r.lands(lane, t, held))
	if err != nil {
		return fmt.Errorf("from rank %d: %w", r.ranks.world(t.peer), err)
	}
	return nil
}

// lands returns a function that takes a talk's message, in pieces of whole
// elements, and lands it move by move, or puts it where a move is held.
func (r *run) lands(lane int, t talk, held [][]byte) func(p []byte) error {
	next, left := 0, int64(0) // the move after the one that lands; what that lacks
	var land func(p []byte) error
	return func(p []byte) error {
		for len(p) > 0 {
			for left == 0 {
				if next == len(t.moves) {
					return fmt.Errorf("%d bytes beyond the end", len(p))
				}
				m := t.moves[next]
				land, left = r.dst.write(lane, m, r.op), r.dst.bytes(lane, m.Dst, m.N)
				if held != nil && held[next] != nil {
					rest := held[next]
					land = func(p []byte) error { rest = rest[copy(rest, p):]; return nil }
				}
				next++
			}
			k := min(left, int64(len(p)))
			if err := land(p[:k]); err != nil {
				return err
			}
			p, left = p[k:], left-k
		}
		return nil
	}
}

// size is the length of a lane's part of a talk, in bytes.
func (r *run) size(lane int, t talk) (n int64) {
	for _, m := range t.moves {
		if t.send {
			n += r.src.bytes(lane, m.Src, m.N)
		} else {
			n += r.dst.bytes(lane, m.Dst, m.N)
		}
	}
	return n
}

// tag is that of a talk's message. Where ranks do not know each other's counts it
// has the message's own, so that sender and receiver compare those.
func (r *run) tag(round int, t talk) Tag {
	c, chunks := r.call, 0
	for _, m := range t.moves {
		chunks += m.N
	}
	if first := t.moves[0]; c.Kind.ownCounts() { // and nothing is sent along with it
		lo, hi := r.dst.chunk(first.Dst)
		if t.send {
			lo, hi = r.src.chunk(first.Src)
		}
		c.Count = uint64(hi - lo)
	}
	return c.tag(r.first+round, t.moves[0].Dst, chunks)
}

// A strayError is a message that is not the one expected: the ranks disagree.
type strayError struct {
	from         int
	ours, theirs Call
	n, want      int64
}

func (e *strayError) Error() string {
	return fmt.Sprintf("message of %d bytes for %v, %d bytes expected", e.n, e.theirs, e.want)
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
