package ops

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"peermesh/ops/tensor"
)

// MaxTag is the largest tag of a message.
const MaxTag = 1<<31 - 1

// tagLane marks the lanes of messages among those of a group.
const tagLane = 1 << 31

// maxRefusals bounds the refused messages that a sender has yet to hear of.
const maxRefusals = 16

type pairKey struct {
	rank int // in the group
	tag  uint32
	send bool
}

// A pair is one direction of messages with one rank under one tag. They have an
// order and a lane of their own, so messages under other tags pass by.
type pair struct {
	queue queue
	seq   uint64
	bound bound

	// Of the message whose turn it is, and what a transport asks for meanwhile.
	at       *message
	into     landing
	claim    func() error
	mismatch *MismatchError // it is not what was to be received
	parts    iter.Seq2[[]byte, error]
	accept   func(tag Tag, n int64) error
	land     func(p []byte) error

	mu      sync.Mutex
	refused []*MismatchError // of those that we sent
}

// A message is what one of its two ranks has of it.
type message struct {
	Work
	g *Group
	pairKey
	pair   *pair
	ctx    context.Context // the caller's
	call   Call
	layout layout
	from   int          // who is asked, as the caller names it; −1: nobody
	turn   func() error // what to do when it is its turn; nil: exchange it
	part   bool         // of a receive from any rank, which is observed as one
	id     uint64       // for the Observer, if there is one
}

func newPair(timeout time.Duration) *pair {
	p := &pair{bound: bound{timeout: timeout}}
	p.parts = func(yield func([]byte, error) bool) { p.at.layout.each(0, 0, 1, yield) }
	p.accept = p.expect
	p.land = func(b []byte) error {
		if p.mismatch != nil {
			return nil
		}
		return p.into.land(b)
	}
	return p
}

// Send is Isend and Wait: it returns when x may be used again, which is when the
// transport has taken all of it. How much that may be before the other rank has
// asked for it is the transport's window: between worlds of package mesh over TCP
// 1 MiB for each rank and tag (node.Window); over QUIC 512 KiB growing to 10 MiB,
// and 768 KiB growing to 15 MiB for all lanes of two ranks together; in memnet
// 256 KiB. The last receiver may have read up to 256 KiB beyond its message. To
// count on any of it is to count on a buffer: a program that is right with none
// is right with all.
func (g *Group) Send(ctx context.Context, x tensor.Tensor, to int, tag uint32) error {
	return g.Isend(ctx, x, to, tag).Wait()
}

// Recv is Irecv and Wait.
func (g *Group) Recv(ctx context.Context, x tensor.Tensor, from int, tag uint32) error {
	return g.Irecv(ctx, x, from, tag).Wait()
}

// Isend sends x to a rank, after the messages that were issued before to that
// rank under that tag. x must not change until the Work is done. It holds no copy
// of x, so any number may be issued before their receives, of any size, in any
// order across ranks and tags. What a done Work has sent arrives, also when this
// process leaves the world next (mesh.Leave).
//
// A receiver that expects another element type or count says so, and this Work ends
// with a *MismatchError if it is not done by then. If it is, the next Work that
// sends to that rank under that tag does, once, although its own message has been
// sent: what a receiver gets does not depend on when its complaint arrives. Which
// message it was is in the error's Ours. (Of more than 16 complaints that nobody
// has waited for, or where the word itself is lost, the receiver's error is all
// there is.)
func (g *Group) Isend(ctx context.Context, x tensor.Tensor, to int, tag uint32) *Work {
	m, err := g.message(x, to, tag, true)
	if err != nil {
		return failed(err)
	}
	return m.post(ctx)
}

// Irecv receives into x the next message of a rank under a tag. x has the
// element type and count of what was sent: a message of another is taken off
// the lane and is a *MismatchError, and the next one can be received.
func (g *Group) Irecv(ctx context.Context, x tensor.Tensor, from int, tag uint32) *Work {
	m, err := g.message(x, from, tag, false)
	if err != nil {
		return failed(err)
	}
	m.from = from
	return m.post(ctx)
}

// message checks the arguments of one.
func (g *Group) message(x tensor.Tensor, peer int, tag uint32, send bool) (*message, error) {
	if g.Rank() < 0 {
		return nil, ErrNotMember
	}
	rank, ok := g.member(peer)
	switch {
	case !ok:
		return nil, g.stranger(KindSend, "rank", peer)
	case rank == g.Rank():
		return nil, ErrSelf
	}
	return g.messageWith(x, rank, tag, send)
}

// messageWith is message with a peer that is another rank of the group.
func (g *Group) messageWith(x tensor.Tensor, rank int, tag uint32, send bool) (*message, error) {
	if tag > MaxTag {
		return nil, argument(KindSend, "tag %d is above %d", tag, MaxTag)
	}
	if err := valid(KindSend, "x", x); err != nil {
		return nil, err
	}
	if g.plans.err != nil {
		return nil, g.plans.err
	}
	k := pairKey{rank, tag, send}
	return &message{
		g: g, pairKey: k, pair: g.pair(k), layout: newLayout(x, 1, 1), from: -1,
		call: Call{Kind: KindSend, DType: x.DType(), Count: uint64(x.Len()), Root: noRoot},
	}, nil
}

func (g *Group) pair(k pairKey) *pair {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.pairs[k]
	if p == nil {
		p = newPair(g.c.Timeout)
		g.pairs[k] = p
	}
	return p
}

// post gives the message its place behind those of its pair, and has it done.
func (m *message) post(ctx context.Context) *Work {
	m.ctx = ctx
	m.begin()
	m.source = m.from
	m.pair.queue.put(&m.Work, m)
	return &m.Work
}

// number is called in the order of issue.
func (m *message) number(soon bool) {
	m.call.Seq = m.pair.seq
	m.pair.seq++
	if m.observed() {
		m.id = m.g.announce(soon, Operation{Call: m.call, Peer: m.g.ranks.world(m.rank), Tag: m.tag, Send: m.pairKey.send})
	}
}

func (m *message) observed() bool { return m.g.c.Observer != nil && !m.part }

// perform does what the message is about, when its turn has come.
func (m *message) perform() error {
	if m.observed() {
		return m.g.observed(m.id, m.move)
	}
	return m.move()
}

func (m *message) move() error {
	if m.turn != nil {
		return m.turn()
	}
	return m.exchange()
}

func (m *message) exchange() error {
	ctx := m.pair.bound.begin(m.ctx, glance)
	defer m.pair.bound.end()
	if ctx.Err() != nil {
		return fmt.Errorf("ops: %v: %w", m.call, context.Cause(ctx))
	}
	if m.pairKey.send {
		return m.send(ctx)
	}
	return m.recv(ctx, nil)
}

func (m *message) lane() uint64 { return m.g.lane(tagLane | int(m.tag)) }

func (m *message) send(ctx context.Context) error {
	m.pair.at = m
	err := m.g.t.Send(ctx, m.rank, m.lane(), m.call.tag(0, 0, 1), m.layout.bytes(0, 0, 1), m.pair.parts)
	if err == nil {
		err = m.pair.refusal()
	}
	if err != nil {
		return fmt.Errorf("ops: send to rank %d, tag %d: %w", m.g.ranks.world(m.rank), m.tag, err)
	}
	return nil
}

// recv takes the next message. claim, when not nil, is asked once it is there
// whether it may be taken.
func (m *message) recv(ctx context.Context, claim func() error) error {
	p := m.pair
	p.at, p.claim, p.mismatch = m, claim, nil
	p.into.start(&m.layout, 0, whole, tensor.Op{})
	err := m.g.t.Recv(ctx, m.rank, m.lane(), p.accept, p.land)
	if err == nil && p.mismatch != nil {
		err = p.mismatch
	}
	if err != nil {
		return fmt.Errorf("ops: recv from rank %d, tag %d: %w", m.g.ranks.world(m.rank), m.tag, err)
	}
	return nil
}

// expect compares the message that has come with the receive whose turn it is.
func (p *pair) expect(got Tag, n int64) error {
	m := p.at
	if p.claim != nil {
		if err := p.claim(); err != nil {
			return err
		}
	}
	ours, theirs := m.call, callOf(got[:])
	ours.Seq = theirs.Seq // receives that failed before their message leave the order behind
	if theirs != ours || n != m.layout.bytes(0, 0, 1) {
		p.mismatch = &MismatchError{Rank: m.g.ranks.world(m.rank), Ours: ours, Theirs: theirs}
		_ = m.g.t.Signal(m.rank, m.g.id, encodeRefusal(m.tag, theirs, ours)) // lost: we know
	}
	return nil
}

// refused hears from a receiver that it had no use for a message.
func (g *Group) refused(from int, s signal) {
	g.mu.Lock()
	p := g.pairs[pairKey{from, s.tag, true}]
	g.mu.Unlock()
	if p == nil || s.call.Kind != KindSend || s.ours.Kind != KindSend {
		return // we have sent nothing there
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.refused) < maxRefusals {
		p.refused = append(p.refused, &MismatchError{Rank: g.ranks.world(from), Ours: s.call, Theirs: s.ours})
	}
}

// refusal takes the first of the refusals, if there is one.
func (p *pair) refusal() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.refused) == 0 {
		return nil
	}
	e := p.refused[0]
	p.refused = p.refused[1:]
	return e
}
