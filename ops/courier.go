package ops

import (
	"fmt"
	"iter"
	"sync"

	"peermesh/ops/tensor"
)

// A courier carries messages of a lane, one at a time. What a transport asks for
// while it sends or receives are functions, and those of a courier are made once: a
// function that is passed through an interface, like all that it refers to, is allocated
// anew wherever it is written down, and three of them a message would be most of what a
// small one costs.
type courier struct {
	lane  *lane
	start func() // carry, on a goroutine of its own
	ended sync.WaitGroup

	parts  iter.Seq2[[]byte, error]
	accept func(tag Tag, n int64) error
	land   func(p []byte) error

	// Of the message on its way:
	round int
	talk  *talk
	tag   Tag
	size  int64

	// Of a receive: moves land one after the other, as they lie in the message.
	next int     // the move after the one that lands
	left int64   // bytes that that lacks
	rest []byte  // where they are held; nil: nowhere
	into landing // or where they land
}

// join has the courier carry for a lane.
func (c *courier) join(l *lane) {
	c.lane = l
	c.parts, c.accept, c.land = c.read, c.expect, c.write
	c.start = func() {
		defer c.ended.Done()
		if err := c.carry(); err != nil {
			l.fail(err)
		}
	}
}

// take gives the courier the next message, of round i.
func (c *courier) take(i int, t *talk) {
	c.round, c.talk, c.size = i, t, c.lane.size(t)
	c.next, c.left, c.rest = 0, 0, nil
	c.tag = c.lane.run.tag(i, t)
}

// carry sends the message or receives it.
func (c *courier) carry() error {
	l, peer := c.lane, c.talk.peer
	if c.talk.send {
		if err := l.t.Send(l.ctx, peer, l.lane(l.i), c.tag, c.size, c.parts); err != nil {
			return fmt.Errorf("to rank %d: %w", l.ranks.world(peer), err)
		}
		return nil
	}
	l.waits[peer].Add(1)
	defer l.waits[peer].Add(-1)
	defer func() { c.into, c.rest = landing{}, nil }() // a tensor is its owner's again
	if err := l.t.Recv(l.ctx, peer, l.lane(l.i), c.accept, c.land); err != nil {
		return fmt.Errorf("from rank %d: %w", l.ranks.world(peer), err)
	}
	return nil
}

// read yields what is sent.
func (c *courier) read(yield func([]byte, error) bool) {
	for i := range c.talk.moves {
		m := &c.talk.moves[i]
		if !c.lane.run.src.each(c.lane.i, m.Src, m.N, yield) {
			return
		}
	}
}

// expect compares what comes with what should.
func (c *courier) expect(tag Tag, n int64) error {
	if tag != c.tag || n != c.size {
		return &strayError{from: c.talk.peer, ours: callOf(c.tag[:]), theirs: callOf(tag[:]), n: n, want: c.size}
	}
	return nil
}

// write takes what comes, in pieces of whole elements, and lands it move by move, or
// puts it where a move is held.
func (c *courier) write(p []byte) error {
	for len(p) > 0 {
		for c.left == 0 {
			if c.next == len(c.talk.moves) {
				return fmt.Errorf("%d bytes beyond the end", len(p))
			}
			c.turn()
		}
		k := min(c.left, int64(len(p)))
		if c.rest != nil {
			c.rest = c.rest[copy(c.rest, p[:k]):]
		} else if err := c.into.land(p[:k]); err != nil {
			return err
		}
		p, c.left = p[k:], c.left-k
	}
	return nil
}

// turn goes on to the next move.
func (c *courier) turn() {
	l, i := c.lane, c.next
	m := c.talk.moves[i]
	c.left, c.rest = l.run.dst.bytes(l.i, m.Dst, m.N), nil
	if slot := c.talk.held[i].slot; slot >= 0 && l.held[slot] != nil {
		c.rest = l.held[slot]
	} else {
		c.into.start(&l.run.dst, l.i, m, l.run.op)
	}
	c.next++
}

// tag is that of a talk's message. Where ranks do not know each other's counts it
// has the message's own, so that sender and receiver compare those.
func (r *run) tag(round int, t *talk) Tag {
	c := r.call
	if first := t.moves[0]; c.Kind.ownCounts() { // and nothing is sent along with it
		lo, hi := r.dst.chunk(first.Dst)
		if t.send {
			lo, hi = r.src.chunk(first.Src)
		}
		c.Count = uint64(hi - lo)
	}
	return c.tag(r.first+round, t.moves[0].Dst, t.chunks)
}

// hold makes room for what a round may not land at once. clash says that what it
// sends may still be on its way when that comes.
func (l *lane) hold(r *round, clash bool) {
	for len(l.held) < r.slots {
		l.held = append(l.held, nil)
	}
	for i := range r.talks {
		t := &r.talks[i]
		for j, h := range t.held {
			if h.crowd || h.clash && clash {
				l.held[h.slot] = scratch.get(l.run.dst.bytes(l.i, t.moves[j].Dst, t.moves[j].N))
			}
		}
	}
}

// release gives back what a round has held.
func (l *lane) release() {
	for i, p := range l.held {
		if p != nil {
			scratch.put(p)
			l.held[i] = nil
		}
	}
}

// settle lands what was held: by itself, or where several land on one chunk in the
// canonical order.
func (l *lane) settle(r *round) error {
	if r.slots == 0 {
		return nil
	}
	for i := range r.talks {
		t := &r.talks[i]
		for j, h := range t.held {
			if h.crowd || h.slot < 0 || l.held[h.slot] == nil {
				continue
			}
			var into landing
			into.start(&l.run.dst, l.i, t.moves[j], l.run.op)
			if err := into.land(l.held[h.slot]); err != nil {
				return err
			}
		}
	}
	for i := range r.crowds {
		if err := l.gather(&r.crowds[i]); err != nil {
			return err
		}
	}
	return nil
}

// gather adds up all that came for a chunk with what is there, by steps that were
// worked out when the plan was made. The first to be folded into is often a buffer and
// not the tensor: the canonical order pairs ranks, and this one is but one of them.
func (l *lane) gather(c *crowd) error {
	dst := &l.run.dst
	off, n := dst.span(l.i, c.chunk)
	if n == 0 {
		return nil
	}
	bytes := func(p part) []byte {
		skip := dst.bytes(l.i, p.dst, c.chunk-p.dst)
		return l.held[p.slot][skip : skip+n]
	}
	if g, ok := dst.x.Memory().(gatherer); ok {
		return g.gather(c, off, n, bytes, l.run.op)
	}
	for _, s := range c.steps {
		var err error
		if s[0].slot < 0 {
			err = dst.x.ReduceAt(bytes(s[1]), off, l.run.op)
		} else {
			err = tensor.Host(bytes(s[0])).ReduceAt(bytes(s[1]), 0, dst.x.DType(), l.run.op)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
