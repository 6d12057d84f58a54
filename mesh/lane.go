package mesh

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"time"

	"peermesh/node"
)

const (
	// MaxLanes bounds the lanes that one rank may open to another.
	MaxLanes = 1024
	// tagSize is the length of a tag in bytes; mesh carries it unread.
	tagSize = 40
	// headSize is that of a message's head: tag and length.
	headSize = tagSize + 8
	// maxMessage bounds a message's payload in bytes.
	maxMessage = 1 << 40
	// joinSize is the longest payload that leaves in one write with its head, and
	// the part of a longer one that does. More would cost a copy that matters.
	joinSize = 16 << 10
	// laneBuffer is what a lane that is read from holds, in bytes.
	laneBuffer = 256 << 10
	// pieceAlign divides the length of every piece of a payload but the last.
	pieceAlign = 16
	// verdictWait bounds how long a broken lane waits for the control stream to
	// say why. The named end of the world is worth more than "stream reset".
	verdictWait = time.Second
)

// errTwice is the fault of a program that receives twice at once on a lane.
var errTwice = errors.New("mesh: a lane can be received from by one call at a time")

// laneHello is a hello and the lane's number.
const laneHelloSize = helloSize + 8

func appendHead(p []byte, tag [tagSize]byte, n int64) []byte {
	p = append(p, tag[:]...)
	return binary.LittleEndian.AppendUint64(p, uint64(n))
}

func decodeHead(p []byte) (tag [tagSize]byte, n int64, err error) {
	s := scanner{p: p}
	copy(tag[:], s.bytes(tagSize))
	size := s.uint64()
	if size > maxMessage {
		s.fail("message of %d bytes: %w", size, node.ErrViolation)
		size = 0
	}
	return tag, int64(size), s.end()
}

// interrupt makes set(past) happen when ctx ends, and undoes it: release waits
// for a set under way and lifts the deadline, so that no later call meets it.
func interrupt(ctx context.Context, set func(time.Time)) (release func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		set(time.Unix(1, 0))
		close(done)
	})
	return func() {
		if !stop() {
			<-done
			set(time.Time{})
		}
	}
}

// A tie is interrupt for calls that follow one another on a stream. Most come with
// one context, and stay tied to it from call to call: to tie costs more than to send a
// few bytes.
type tie struct {
	ctx     context.Context // nil: to none
	release func()
}

// to ties what set interrupts to ctx.
func (t *tie) to(ctx context.Context, set func(time.Time)) {
	if t.ctx != nil && t.ctx == ctx && ctx.Err() == nil {
		return
	}
	t.loose()
	if t.release = interrupt(ctx, set); reflect.ValueOf(ctx).Comparable() {
		t.ctx = ctx
	}
}

// rest ends a call. What the end of its context has set is lifted.
func (t *tie) rest() {
	if t.ctx == nil || t.ctx.Err() != nil {
		t.loose()
	}
}

// loose unties.
func (t *tie) loose() {
	if t.release != nil {
		t.release()
	}
	t.ctx, t.release = nil, nil
}

// verdict turns an error of a lane's stream into the reason for it. If the peer
// reset this one lane on purpose, that is it; anything else is the end of the
// world coming, and the control stream will tell of which rank.
func (w *World) verdict(ctx context.Context, l *link, err error) error {
	for _, own := range []error{node.ErrGaveUp, node.ErrViolation, node.ErrLimit} {
		if errors.Is(err, own) {
			return err
		}
	}
	timeout := time.NewTimer(verdictWait)
	defer timeout.Stop()
	select {
	case <-w.ctx.Done():
		return context.Cause(w.ctx)
	case <-l.left:
		return w.missed(l.rank)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timeout.C:
		return err
	}
}

// turns is a lock that a context can end the wait for, and that serves in the
// order of asking.
type turns chan struct{}

func newTurns() turns { return make(turns, 1) }

// take waits for the turn.
func (t turns) take(ctx context.Context, w *World) error {
	select {
	case t <- struct{}{}:
		return nil
	default:
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-w.ctx.Done():
		return context.Cause(w.ctx)
	case <-ctx.Done():
		return fmt.Errorf("mesh: waiting for a lane: %w", context.Cause(ctx))
	}
}

func (t turns) give() { <-t }
