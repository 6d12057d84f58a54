package mesh

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"peermesh/node"
)

// An outLane is the sending side of a lane: one stream for its whole life.
type outLane struct {
	w     *World
	link  *link
	lane  uint64
	ahead atomic.Int64 // see Ahead
	total atomic.Int64 // bytes written; see Traffic
	turn  turns        // guards the rest

	stream   *node.Stream
	deadline func(time.Time) // of the stream's writes
	tie      tie
	hello    []byte // still to be sent, before the first message
	buf      []byte // head and first bytes of a message

	// Of the message that is being sent:
	yield   func(p []byte, err error) bool // add
	ctx     context.Context
	joined  []byte // what is to leave in one write with the head; nil: it has left
	whole   int    // its length when it leaves
	sent    int    // bytes written
	left    int64  // payload bytes still to come
	failure error

	err    error // why the lane is broken
	closed bool  // by Leave
}

// outbound is the lane's sending side, made if it is new.
func (w *World) outbound(to int, lane uint64) (*outLane, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left {
		return nil, fmt.Errorf("mesh: send after leaving: %w", ErrClosed)
	}
	key := laneKey{to, lane}
	o := w.out[key]
	if o == nil {
		if w.lanesTo[to] >= MaxLanes {
			return nil, fmt.Errorf("mesh: more than %d lanes to rank %d", MaxLanes, to)
		}
		w.lanesTo[to]++
		o = &outLane{w: w, link: w.to(to), lane: lane, turn: newTurns()}
		o.yield = o.add
		w.out[key] = o
	}
	return o, nil
}

// Ahead is the longest message that Send takes without waiting for the receiver, if all
// before it have been received: as far as that is certain, which before the first message
// of a lane nothing is.
func (w *World) Ahead(to int, lane uint64) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.out[laneKey{to, lane}]; o != nil {
		return o.ahead.Load()
	}
	return 0
}

// Send writes one message to a rank's lane: tag, then n bytes drawn from parts,
// which must yield exactly n. It keeps no yielded slice after it asks for the
// next. Messages of one (to, lane) leave in the order of the calls, and Send
// returns when the last slice may be used again. It blocks while the receiver is
// a window behind.
//
// A ctx that ends before the first byte has left harms nothing. Later it breaks
// the lane, as does an error or a wrong count of parts: later calls on the lane
// fail, here and at the receiver.
func (w *World) Send(ctx context.Context, to int, lane uint64, tag [tagSize]byte, n int64, parts iter.Seq2[[]byte, error]) error {
	if err := w.checkPeer(to); err != nil {
		return err
	}
	if n < 0 || n > maxMessage {
		return fmt.Errorf("mesh: message of %d bytes", n)
	}
	o, err := w.outbound(to, lane)
	if err != nil {
		return err
	}
	if err := o.turn.take(ctx, w); err != nil {
		return err
	}
	defer o.turn.give()
	switch {
	case o.err != nil:
		return o.err
	case o.closed:
		return fmt.Errorf("mesh: send after leaving: %w", ErrClosed)
	case isClosed(o.link.left):
		return w.missed(to)
	case ctx.Err() != nil:
		return fmt.Errorf("mesh: send to rank %d: %w", to, context.Cause(ctx))
	}
	if err := o.open(ctx); err != nil {
		if ctx.Err() == nil {
			err = w.verdict(ctx, o.link, err)
		}
		return o.failed(0, err)
	}
	o.tie.to(ctx, o.deadline)
	defer o.tie.rest()
	return o.send(ctx, tag, n, parts)
}

// open opens the stream at the first message. The preamble leaves with it.
func (o *outLane) open(ctx context.Context) error {
	if o.stream != nil {
		return nil
	}
	o.link.need()
	select {
	case <-o.link.attached: // before, the other side may not know the world
	case <-o.w.ctx.Done():
		return context.Cause(o.w.ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	opening, cancel := context.WithCancelCause(o.w.ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	s, err := o.w.node.Open(opening, o.link.id, laneProtocol)
	if err != nil {
		return err
	}
	s.Bind(o.w.ctx)
	if opening.Err() != nil { // too late for the stream, which is reset
		s.Reset(node.ErrGaveUp)
		return context.Cause(opening)
	}
	o.stream, o.deadline = s, s.SetWriteDeadline
	o.ahead.Store(max(s.Ahead()-int64(laneHelloSize+headSize), 0))
	o.hello = binary.LittleEndian.AppendUint64(o.w.hello().append(nil), o.lane)
	return nil
}

// send writes head and payload. What is short leaves in one write; of a longer
// payload the first part does, and the rest goes uncopied.
func (o *outLane) send(ctx context.Context, tag [tagSize]byte, n int64, parts iter.Seq2[[]byte, error]) error {
	o.ctx, o.failure, o.sent, o.left = ctx, nil, 0, n
	o.whole = len(o.hello) + headSize + int(min(n, joinSize))
	o.buf = slices.Grow(o.buf[:0], o.whole) // as long as this lane has needed: most are short
	o.joined = appendHead(append(o.buf, o.hello...), tag, n)
	parts(o.yield)
	switch {
	case o.failure != nil:
	case o.left > 0:
		o.failure = o.failed(o.sent, fmt.Errorf("mesh: message ends %d bytes short of %d", o.left, n))
	case o.joined != nil:
		o.write(o.joined)
	}
	if o.ctx = nil; o.failure == nil {
		o.hello = nil
	}
	return o.failure
}

// add takes what parts yield: send has it as a value, made once, for a function that
// is made for each message would be an allocation.
func (o *outLane) add(p []byte, err error) bool {
	if err == nil && int64(len(p)) > o.left {
		err = fmt.Errorf("mesh: message goes on after its end, which was %d bytes on", o.left)
	}
	if err != nil {
		o.failure = o.failed(o.sent, err)
		return false
	}
	o.left -= int64(len(p))
	if o.joined != nil {
		k := min(len(p), o.whole-len(o.joined))
		o.joined = append(o.joined, p[:k]...)
		if p = p[k:]; o.left == 0 && len(p) == 0 || len(o.joined) < o.whole {
			return true // a last write waits for the end of parts: they may err
		}
		if !o.write(o.joined) {
			return false
		}
		o.joined = nil
	}
	return len(p) == 0 || o.write(p)
}

func (o *outLane) write(p []byte) bool {
	n, err := o.stream.Write(p)
	o.sent += n
	o.total.Add(int64(n))
	if err != nil {
		o.failure = o.lost(o.ctx, o.sent, err)
	}
	return err == nil
}

// lost ends a Send whose write failed: because of ctx, or for good.
func (o *outLane) lost(ctx context.Context, sent int, err error) error {
	if ctx.Err() != nil {
		return o.failed(sent, context.Cause(ctx))
	}
	return o.broke(o.w.verdict(ctx, o.link, err))
}

// failed ends a Send that was given up. What was not begun breaks nothing.
func (o *outLane) failed(sent int, err error) error {
	if sent == 0 {
		return fmt.Errorf("mesh: send to rank %d: %w", o.link.rank, err)
	}
	return o.broke(err)
}

// broke makes the lane fail from now on.
func (o *outLane) broke(err error) error {
	if o.w.ctx.Err() != nil {
		return context.Cause(o.w.ctx)
	}
	o.err = fmt.Errorf("mesh: lane %d to rank %d is broken: %w", o.lane, o.link.rank, err)
	o.stream.Reset(fmt.Errorf("%w: %w", node.ErrGaveUp, err))
	return o.err
}
