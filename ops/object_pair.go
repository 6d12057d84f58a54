package ops

import (
	"context"
	"fmt"

	"peermesh/ops/tensor"
)

// SendObject sends v to a rank, as a message of the bytes of its encoding: its
// order among messages, and when it returns, are those of Send. A value that is too
// large or cannot be encoded is an *ObjectError, and nothing has moved.
func SendObject[T any](ctx context.Context, g *Group, v T, to int, tag uint32) error {
	p, err := encodeObject(v)
	if err != nil {
		return &ObjectError{Rank: g.self(), Size: -1, Max: g.c.MaxObject, Err: err}
	}
	if n := int64(len(p)); n > g.c.MaxObject {
		return &ObjectError{Rank: g.self(), Size: n, Max: g.c.MaxObject}
	}
	return g.Send(ctx, tensor.Of(p), to, tag)
}

// RecvObject returns the next message of a rank under a tag, which SendObject has
// sent. One that is larger than Config.MaxObject is an *ObjectError, found before
// room is made for it; it is taken off the lane, as is one that is no encoding of a T,
// so that the next can be received.
func RecvObject[T any](ctx context.Context, g *Group, from int, tag uint32) (v T, err error) {
	p, err := g.recvBytes(ctx, from, tag)
	if err != nil {
		return v, err
	}
	if v, err = decodeObject[T](p); err != nil {
		return v, &ObjectError{Rank: g.given(from), Size: int64(len(p)), Max: g.c.MaxObject, Err: err}
	}
	return v, nil
}

// self is this rank in the world; −1 in a group that it is not in.
func (g *Group) self() int {
	if g.Rank() < 0 {
		return -1
	}
	return g.ranks.world(g.Rank())
}

// given is the rank in the world of a member that a caller gave.
func (g *Group) given(rank int) int {
	i, _ := g.member(rank)
	return g.ranks.world(i)
}

// recvBytes receives a message of bytes, as many as there are.
func (g *Group) recvBytes(ctx context.Context, from int, tag uint32) (p []byte, err error) {
	m, err := g.message(tensor.Of([]uint8{}), from, tag, false)
	if err != nil {
		return nil, err
	}
	m.turn = func() (err error) {
		ctx, stop := g.bounded(ctx)
		defer stop()
		p, err = m.recvBytes(ctx)
		return err
	}
	err = m.post(ctx).Wait()
	return p, err
}

func (m *message) recvBytes(ctx context.Context) ([]byte, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("ops: %v: %w", m.call, err)
	}
	peer, max := m.g.ranks.world(m.rank), m.g.c.MaxObject
	var p []byte
	var unfit error
	err := m.g.t.Recv(ctx, m.rank, m.lane(), func(got Tag, n int64) error {
		ours, theirs := m.call, callOf(got[:])
		ours.Seq, ours.Count = theirs.Seq, theirs.Count
		switch {
		case theirs != ours || n < 0 || uint64(n) != theirs.Count:
			unfit = &MismatchError{Rank: peer, Ours: ours, Theirs: theirs}
		case n > max:
			unfit = &ObjectError{Rank: peer, Size: n, Max: max}
			ours.Count = uint64(max)
		default:
			p = make([]byte, 0, n)
			return nil
		}
		// The message is taken nevertheless, and dropped, or the lane would be of no use.
		_ = m.g.t.Signal(m.rank, m.g.id, encodeRefusal(m.tag, theirs, ours)) // lost: we know
		return nil
	}, func(b []byte) error {
		if unfit == nil {
			p = append(p, b...)
		}
		return nil
	})
	if err == nil {
		err = unfit
	}
	if err != nil {
		return nil, fmt.Errorf("ops: recv from rank %d, tag %d: %w", peer, m.tag, err)
	}
	return p, nil
}
