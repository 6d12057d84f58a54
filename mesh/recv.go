package mesh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"peermesh/node"
)

// An inLane is the receiving side of a lane.
type inLane struct {
	w    *World
	link *link
	lane uint64

	attached chan struct{}   // closed when the stream is there
	stream   *node.Stream    // set before
	deadline func(time.Time) // of the stream's reads, likewise
	calls    atomic.Int32    // of Recv under way
	total    atomic.Int64    // bytes read; see Traffic
	turn     turns           // guards the rest: Recv's and drain's

	buf  []byte // borrowed while there is something to read, not by the peer's opening
	r, n int    // buf[r:n] is read and not yet used
	head bool   // tag and size are those of a message not yet taken
	tag  [tagSize]byte
	size int64
	tie  tie
	end  error // of the stream, once buf is used up
	err  error // why the lane is broken
	loan loan
}

// inbound is the lane's receiving side, made if it is new. The lock is held.
func (w *World) inbound(from int, lane uint64) (*inLane, error) {
	key := laneKey{from, lane}
	l := w.in[key]
	if l == nil {
		if w.lanesFrom[from] >= MaxLanes {
			return nil, fmt.Errorf("mesh: more than %d lanes from rank %d: %w", MaxLanes, from, node.ErrLimit)
		}
		w.lanesFrom[from]++
		l = &inLane{w: w, link: w.to(from), lane: lane, attached: make(chan struct{}), turn: newTurns()}
		w.in[key] = l
	}
	return l, nil
}

// serveLane takes a lane that another rank opens.
func (m *Mesh) serveLane(s *node.Stream) {
	w, l := m.admit(s)
	if l == nil {
		return
	}
	p, err := readFull(s, 8)
	if err != nil {
		m.drop(s, err)
		return
	}
	number := scanner{p: p}
	if err := w.attach(l, number.uint64(), s); err != nil {
		log.Debugw("refused a lane", "peer", s.Peer(), "err", err)
		s.Reset(err)
	}
}

func (w *World) attach(l *link, lane uint64, s *node.Stream) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left || w.ctx.Err() != nil {
		return node.ErrClosed
	}
	in, err := w.inbound(l.rank, lane)
	if err != nil {
		return err
	}
	if in.stream != nil {
		return fmt.Errorf("mesh: lane %d opened twice: %w", lane, node.ErrViolation)
	}
	s.Bind(w.ctx)
	s.SetDeadline(time.Time{})
	in.stream, in.deadline = s, s.SetReadDeadline
	close(in.attached)
	l.takeLane(in)
	return nil
}

// Recv takes the next message of a rank's lane. accept sees its tag and length
// before any payload is read; when it returns an error, Recv returns that error
// and the message stays, unread, for the next Recv of the lane. land gets the
// payload in order, in pieces that it borrows until it returns; every piece but
// the last is a multiple of 16 bytes. At most one Recv a lane may run at a time.
//
// A ctx that ends before accept has been called harms nothing. In mid-message it
// breaks the lane, as does an error of land: later calls on the lane fail, here
// and at the sender.
//
// A rank that has left, and that this is the first to miss, ends the world. A ctx that
// has a method Spare is of a receiver that can do without: it gets a *LeftError.
func (w *World) Recv(ctx context.Context, from int, lane uint64, accept func(tag [tagSize]byte, n int64) error, land func(p []byte) error) error {
	if err := w.checkPeer(from); err != nil {
		return err
	}
	l, err := w.receive(from, lane)
	if err != nil {
		return err
	}
	if l.calls.Add(1) > 1 {
		l.calls.Add(-1)
		return errTwice
	}
	defer l.calls.Add(-1)
	if err := l.turn.take(ctx, w); err != nil {
		return err
	}
	defer l.used()
	if l.err != nil {
		return l.err
	}
	if err := l.awaitStream(ctx); err != nil {
		return err
	}
	l.tie.to(ctx, l.deadline)
	defer l.tie.rest()
	if err := l.readHead(ctx); err != nil {
		return err
	}
	if err := accept(l.tag, l.size); err != nil {
		return err
	}
	l.head = false
	return l.readPayload(ctx, l.size, land)
}

func (w *World) receive(from int, lane uint64) (*inLane, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left {
		return nil, fmt.Errorf("mesh: receive after leaving: %w", ErrClosed)
	}
	return w.inbound(from, lane)
}

// awaitStream waits for the sender's first message, or for the certainty that
// there will be none.
func (l *inLane) awaitStream(ctx context.Context) error {
	select {
	case <-l.attached:
		return nil
	default:
	}
	l.link.need() // or it could leave without a word to us
	select {
	case <-l.attached:
	case <-l.link.drained: // it has left, and this lane is none of those it opened
		if !isClosed(l.attached) {
			return l.missing(ctx)
		}
	case <-l.w.ctx.Done():
		return context.Cause(l.w.ctx)
	case <-ctx.Done():
		return fmt.Errorf("mesh: receive from rank %d: %w", l.link.rank, context.Cause(ctx))
	}
	return nil
}

// missing is the result of a Recv from a rank that has left and of which nothing is to
// come: the end of the world, unless the receiver can do without it.
func (l *inLane) missing(ctx context.Context) error {
	if _, can := ctx.(interface{ Spare() }); can {
		return &LeftError{Rank: l.link.rank, Peer: l.link.id}
	}
	return l.w.missed(l.link.rank)
}

// fill reads more into the buffer: at least one byte, or an error. Of a stream that
// lends it reads no more than are wanted: the rest is better taken where it lies.
func (l *inLane) fill(want int) error {
	if l.end != nil {
		return l.end
	}
	if l.buf == nil {
		if l.stream.Lends() {
			l.buf = make([]byte, headSize)
		} else {
			l.buf = laneBuffers.Get().(*[laneBuffer]byte)[:]
		}
	}
	l.n = copy(l.buf, l.buf[l.r:l.n]) // a few bytes at most: less than a head
	l.r = 0
	room := l.buf[l.n:]
	if l.stream.Lends() {
		room = room[:want]
	}
	k, err := l.stream.Read(room)
	if k > 0 {
		l.n += k
		l.total.Add(int64(k))
		l.link.hear()
		// yamux may give bytes and a time-out at once, and then has lost the window
		// update that goes with them: the sender might wait for it for ever.
		if err != nil {
			l.end = err
		}
		return nil
	}
	if err != nil && !node.IsTimeout(err) {
		l.end = err
	}
	return err
}

// readHead makes the next message's head known.
func (l *inLane) readHead(ctx context.Context) error {
	if l.head {
		return nil
	}
	for l.n-l.r < headSize {
		err := l.fill(headSize - (l.n - l.r))
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) && l.n == l.r:
			l.stream.Close() // tells the sender that all of it was taken
			return l.missing(ctx)
		case ctx.Err() != nil && node.IsTimeout(err) && l.end == nil:
			return fmt.Errorf("mesh: receive from rank %d: %w", l.link.rank, context.Cause(ctx))
		default:
			return l.lost(ctx, err)
		}
	}
	tag, size, err := decodeHead(l.buf[l.r : l.r+headSize])
	if err != nil {
		return l.broke(err)
	}
	l.r += headSize
	l.tag, l.size, l.head = tag, size, true
	return nil
}

// readPayload lends a message's payload, as it comes, to land.
func (l *inLane) readPayload(ctx context.Context, left int64, land func(p []byte) error) error {
	for left > 0 {
		p := l.buf[l.r:l.n]
		if int64(len(p)) >= left {
			p = p[:left]
		} else {
			p = p[:len(p)&^(pieceAlign-1)]
		}
		if len(p) == 0 {
			n, err := l.lend(left, land)
			if n == 0 && err == nil && l.loan.err == nil {
				err = l.fill(int(min(left, pieceAlign)) - (l.n - l.r))
			}
			switch {
			case l.loan.err != nil:
				return l.broke(l.loan.err)
			case err != nil:
				return l.lost(ctx, err)
			}
			left -= int64(n)
			continue
		}
		if err := land(p); err != nil {
			return l.broke(err)
		}
		l.r += len(p)
		left -= int64(len(p))
	}
	return nil
}

// lost ends a Recv whose read failed: because of ctx, or for good.
func (l *inLane) lost(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("mesh: message cut short: %w", node.ErrViolation)
	default:
		err = l.w.verdict(ctx, l.link, err)
	}
	return l.broke(err)
}

// broke makes the lane fail from now on.
func (l *inLane) broke(err error) error {
	if l.w.ctx.Err() != nil {
		return context.Cause(l.w.ctx)
	}
	l.err = fmt.Errorf("mesh: lane %d from rank %d is broken: %w", l.lane, l.link.rank, err)
	if !errors.Is(err, node.ErrViolation) {
		err = fmt.Errorf("%w: %w", node.ErrGaveUp, err)
	}
	l.stream.Reset(err)
	return l.err
}

// used gives up the turn, and looks whether that was the last message of a rank
// that has left.
func (l *inLane) used() {
	l.rest()
	l.turn.give()
	if isClosed(l.link.left) && isClosed(l.attached) {
		l.w.tasks.start(l.drain)
	}
}

// drain reads a lane of a rank that has left to its end, if there is no message
// on it any more, and then closes it: that is what the leaving rank waits for. A
// message that is still there stays, and its Recv comes back here.
func (l *inLane) drain() {
	if l.turn.take(l.w.ctx, l.w) != nil {
		return
	}
	defer l.turn.give()
	l.tie.loose()
	if l.err != nil || l.head || l.n > l.r {
		return
	}
	if err := l.fill(1); errors.Is(err, io.EOF) {
		l.stream.Close()
	}
	l.rest()
}

// laneBuffers are those of lanes that are being read from. A rank of a large world has
// many lanes, and few at work.
var laneBuffers = sync.Pool{New: func() any { return new([laneBuffer]byte) }}

// rest gives the buffer back if there is nothing in it.
func (l *inLane) rest() {
	if l.r == l.n && len(l.buf) == laneBuffer {
		laneBuffers.Put((*[laneBuffer]byte)(l.buf))
		l.buf, l.r, l.n = nil, 0, 0
	}
}
