package ops

import (
	"context"
	"fmt"

	"peermesh/ops/tensor"
)

// MaxTag is the largest tag of a message.
const MaxTag = 1<<31 - 1

// tagLane marks the lanes of messages among those of a group.
const tagLane = 1 << 31

type pairKey struct {
	rank int
	tag  uint32
	send bool
}

// A pair is one direction of messages with one rank under one tag. They have an
// order and a lane of their own, so messages under other tags pass by.
type pair struct {
	queue queue
	seq   uint64
}

// Send is Isend and Wait: it returns when x may be used again, which for a
// message that fits the lane's window is before the other rank has asked for
// it. On a libp2p stream the window is 256 KiB at first and grows to 16 MiB.
func (g *Group) Send(ctx context.Context, x tensor.Tensor, to int, tag uint32) error {
	return g.Isend(ctx, x, to, tag).Wait()
}

// Recv is Irecv and Wait.
func (g *Group) Recv(ctx context.Context, x tensor.Tensor, from int, tag uint32) error {
	return g.Irecv(ctx, x, from, tag).Wait()
}

// Isend sends x to a rank, after the messages that were issued before to that
// rank under that tag. x must not change until the Work is done.
func (g *Group) Isend(ctx context.Context, x tensor.Tensor, to int, tag uint32) *Work {
	return g.message(ctx, x, pairKey{to, tag, true}, g.send)
}

// Irecv receives into x the next message of a rank under a tag. x has the
// element type and count of what was sent: a message of another is taken off
// the lane and is a *MismatchError, and the next one can be received.
func (g *Group) Irecv(ctx context.Context, x tensor.Tensor, from int, tag uint32) *Work {
	return g.message(ctx, x, pairKey{from, tag, false}, g.recv)
}

type mover func(ctx context.Context, k pairKey, c Call, l layout) error

func (g *Group) message(ctx context.Context, x tensor.Tensor, k pairKey, move mover) *Work {
	switch {
	case k.rank == g.Rank():
		return failed(ErrSelf)
	case k.rank < 0 || k.rank >= g.Size():
		return failed(argument(KindSend, "rank %d is not in a group of %d", k.rank, g.Size()))
	case k.tag > MaxTag:
		return failed(argument(KindSend, "tag %d is above %d", k.tag, MaxTag))
	}
	if err := valid(KindSend, "x", x); err != nil {
		return failed(err)
	}
	if err := g.c.check(); err != nil {
		return failed(err)
	}
	c := Call{Kind: KindSend, DType: x.DType(), Count: uint64(x.Len()), Root: noRoot}
	w, p := newWork(), g.pair(k)
	p.queue.put(
		func() { c.Seq = p.seq; p.seq++ },
		func() { w.finish(g.exchange(ctx, k, c, newLayout(x, 1, 1), move)) })
	return w
}

func (g *Group) pair(k pairKey) *pair {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.pairs[k]
	if p == nil {
		p = new(pair)
		g.pairs[k] = p
	}
	return p
}

func (g *Group) exchange(parent context.Context, k pairKey, c Call, l layout, move mover) error {
	ctx, stop := g.bound(parent)
	defer stop()
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("ops: %v: %w", c, err)
	}
	return move(ctx, k, c, l)
}

func (g *Group) tagLane(tag uint32) uint64 { return g.lane(tagLane | int(tag)) }

func (g *Group) send(ctx context.Context, k pairKey, c Call, l layout) error {
	n := l.bytes(0, 0, 1)
	if err := g.t.Send(ctx, k.rank, g.tagLane(k.tag), c.tag(0, 0, 1), n, l.read(0, 0, 1)); err != nil {
		return fmt.Errorf("ops: send to rank %d, tag %d: %w", k.rank, k.tag, err)
	}
	return nil
}

func (g *Group) recv(ctx context.Context, k pairKey, c Call, l layout) error {
	var mismatch error
	land := l.write(0, whole, tensor.Op{})
	err := g.t.Recv(ctx, k.rank, g.tagLane(k.tag), func(got Tag, n int64) error {
		theirs := callOf(got[:])
		c.Seq = theirs.Seq // receives that failed before their message leave the order behind
		if theirs != c || n != l.bytes(0, 0, 1) {
			mismatch = &MismatchError{Rank: k.rank, Ours: c, Theirs: theirs}
			land = func([]byte) error { return nil }
		}
		return nil
	}, func(p []byte) error { return land(p) })
	if err == nil {
		err = mismatch
	}
	if err != nil {
		return fmt.Errorf("ops: recv from rank %d, tag %d: %w", k.rank, k.tag, err)
	}
	return nil
}
