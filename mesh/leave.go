package mesh

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// leaveTimeout bounds a farewell.
const leaveTimeout = 10 * time.Second

// A rank that leaves ends its lanes, says so on the control streams, and stays
// until everybody has what it sent: a connection that closes takes with it what
// the other side has not read. The acknowledgement of a lane is that the receiver
// ends its own direction, which it does when the last message has been taken; that
// of the farewell is a goodbye. From a rank that is itself gone, or whose world has
// ended, there is nothing to wait for; one that leaves as well takes nothing any
// more, but still says goodbye.

// leave is the leaving rank's side.
func (w *World) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, leaveTimeout,
		fmt.Errorf("after %s: %w", leaveTimeout, context.DeadlineExceeded))
	defer cancel()
	if w.sparse() { // some hear by way of us what others say
		select {
		case <-w.survey.done:
		case <-w.ctx.Done():
		case <-ctx.Done():
		}
	}
	w.mu.Lock()
	w.left = true
	lanes := make([][]*outLane, w.Size())
	for key, o := range w.out {
		lanes[key.rank] = append(lanes[key.rank], o)
	}
	w.mu.Unlock()

	parted := make(chan error, w.Size())
	waiting := 0
	for _, l := range w.all() {
		if l.isAttached() && w.tasks.start(func() { parted <- l.farewell(ctx, lanes[l.rank]) }) {
			waiting++
		}
	}
	var err error
	for range waiting {
		err = errors.Join(err, <-parted)
	}
	if w.ctx.Err() != nil { // rather than leave, we lived through the end
		return context.Cause(w.ctx)
	}
	w.ending.Do(func() { w.cancel(fmt.Errorf("mesh: this peer has left: %w", ErrClosed)) })
	return err
}

// farewell parts from one rank.
func (l *link) farewell(ctx context.Context, lanes []*outLane) error {
	var open []*outLane
	for _, o := range lanes {
		if err := o.turn.take(ctx, l.w); err != nil { // a Send is still under way
			return l.late(ctx)
		}
		o.closed = true
		o.tie.loose()
		if o.stream != nil && o.hello == nil {
			open = append(open, o)
		}
		o.turn.give()
	}
	taken := make(chan struct{})
	if !l.w.tasks.start(func() {
		defer close(taken)
		for _, o := range open {
			o.finish(ctx)
		}
	}) {
		close(taken)
	}
	count := binary.LittleEndian.AppendUint32(nil, uint32(len(open)))
	l.urgent <- controlFrame(frameLeave, count) // never blocks: see newLink
	select {
	case <-taken:
	case <-l.left: // it takes no more
	case <-l.over:
	case <-l.w.ctx.Done():
	case <-ctx.Done():
		return l.late(ctx)
	}
	select {
	case <-l.goodbye:
	case <-l.over:
	case <-l.w.ctx.Done():
	case <-ctx.Done():
		return l.late(ctx)
	}
	return nil
}

// late is what a farewell says that ran out of time.
func (l *link) late(ctx context.Context) error {
	if l.w.ctx.Err() != nil {
		return nil // leave says why
	}
	return fmt.Errorf("mesh: rank %d (%s) has not taken all messages %w", l.rank, l.id, context.Cause(ctx))
}

// finish ends a lane and waits for the receiver to do the same.
func (o *outLane) finish(ctx context.Context) {
	defer interrupt(ctx, o.stream.SetReadDeadline)()
	if err := o.stream.CloseWrite(); err != nil {
		return // the stream broke: the receiver is gone, or has given the lane up
	}
	if _, err := o.stream.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
		o.stream.Close()
	}
}

// leaves is the other side: the rank of this link says that it leaves, after it
// has opened a number of lanes to us.
func (l *link) leaves(lanes uint32) error {
	if isClosed(l.left) || lanes > MaxLanes {
		return fmt.Errorf("mesh: farewell with %d lanes, or a second one", lanes)
	}
	l.urgent <- controlFrame(frameGoodbye, nil) // never blocks: see newLink
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.lanes = lanes
	l.mark(l.left)
	l.count()
	for key, in := range l.w.in {
		if key.rank == l.rank && isClosed(in.attached) {
			l.w.tasks.start(in.drain)
		}
	}
	return nil
}

// takeLane counts a lane that the other rank has opened. The world's lock is held.
func (l *link) takeLane(in *inLane) {
	l.opened++
	if isClosed(l.left) {
		l.count()
		l.w.tasks.start(in.drain)
	}
}

// count sees whether every lane of a rank that has left is here. The world's
// lock is held.
func (l *link) count() {
	if l.opened >= l.lanes {
		l.mark(l.drained)
	}
}
