package ops

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"peermesh/ops/tensor"
)

// errClaimed ends the receives of a message that came from elsewhere.
var errClaimed = errors.New("ops: another rank's message was first")

// An anySource is a receive from whichever rank is first. It has a place in the
// order of every rank's messages under its tag. When its turn comes there, it
// waits on that rank's lane; the first message that comes is claimed, and the
// other waits are given up before theirs, which the transport promises is
// harmless. So a rank's messages are received in the order of the receives
// that could have taken them, of this kind or not.
type anySource struct {
	g      *Group
	parent context.Context
	w      *Work
	id     uint64 // for the Observer, if there is one

	mu      sync.Mutex
	ctx     context.Context // from the first wait on
	stop    context.CancelFunc
	waiting map[int]context.CancelCauseFunc // by rank
	left    int                             // ranks that have left the world
	settled bool
	from    int // who settled it
}

// RecvAny is IrecvAny, Wait and Source: from is −1 when no message came.
func (g *Group) RecvAny(ctx context.Context, x tensor.Tensor, tag uint32) (from int, err error) {
	w := g.IrecvAny(ctx, x, tag)
	return w.Source(), w.Wait()
}

// IrecvAny receives into x the next message under a tag of any other rank of the
// group; the Work's Source says of which. It takes part in the order of Irecv: of
// receives that could take a message, the one that was issued first does.
//
// A message of another element type or count is a *MismatchError, as with Irecv. A
// lane that breaks before any message has come is the error of the Work. A rank that
// has left the world is not missed as long as there are others, unlike one that Irecv
// waits for; that all others have left is the error of the Work, which names the last,
// and the world goes on.
func (g *Group) IrecvAny(ctx context.Context, x tensor.Tensor, tag uint32) *Work {
	switch {
	case g.Rank() < 0:
		return failed(ErrNotMember)
	case g.Size() == 1:
		return failed(argument(KindSend, "no other rank is in %v", g.ranks))
	}
	var messages []*message
	for rank := range g.Size() {
		if rank == g.Rank() {
			continue
		}
		m, err := g.messageWith(x, rank, tag, false)
		if err != nil {
			return failed(err)
		}
		messages = append(messages, m)
	}
	a := &anySource{g: g, parent: ctx, w: newWork(), waiting: make(map[int]context.CancelCauseFunc)}
	if g.c.Observer != nil {
		a.id = g.announce(false, Operation{Call: messages[0].call, Peer: -1, Tag: tag})
	}
	for _, m := range messages {
		m.part = true
		m.turn = func() error { a.wait(m); return nil }
		m.post(ctx)
	}
	return a.w
}

// wait is the receive's turn in one rank's order.
func (a *anySource) wait(m *message) {
	ctx := a.enter(m.rank)
	if ctx == nil {
		return
	}
	err := context.Cause(ctx)
	if err == nil {
		err = m.recv(Spare{ctx}, func() error { return a.claim(m.rank) })
	} else {
		err = fmt.Errorf("ops: recv from any rank, tag %d: %w", m.tag, err)
	}
	a.leave(m.rank, err)
}

// enter is a context to wait in, or nil when there is nothing to wait for.
func (a *anySource) enter(rank int) context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.settled {
		return nil
	}
	if a.ctx == nil {
		a.ctx, a.stop = a.g.bounded(a.parent)
		if o := a.g.c.Observer; o != nil {
			o.Start(a.id, now())
		}
	}
	ctx, cancel := context.WithCancelCause(a.ctx)
	a.waiting[rank] = cancel
	return ctx
}

// claim takes the rank's message, if none was before, and ends the other waits.
func (a *anySource) claim(rank int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.settled {
		return errClaimed
	}
	a.settled, a.from = true, rank
	for other, cancel := range a.waiting {
		if other != rank {
			cancel(errClaimed)
		}
	}
	return nil
}

// leave ends a wait. An error before any claim settles the receive as well, unless it
// is only that this rank has left and there are others.
func (a *anySource) leave(rank int, err error) {
	if hasLeft(err) && a.outlive(rank) {
		return
	}
	lost := a.claim(rank) != nil
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting[rank](nil)
	if lost && a.from != rank {
		return
	}
	if lost { // by having claimed it before: there was a message
		a.w.source = a.g.name(rank)
	}
	a.stop()
	if o := a.g.c.Observer; o != nil {
		o.End(a.id, now(), err)
	}
	a.w.finish(err)
}

// outlive ends the wait for a rank that has left, if there are others.
func (a *anySource) outlive(rank int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left++
	if a.left == a.g.Size()-1 {
		return false
	}
	a.waiting[rank](nil)
	delete(a.waiting, rank)
	return true
}
