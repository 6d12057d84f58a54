package ops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// One rank's part of a conversation of two.
func two(t *testing.T, sender, receiver func(g *ops.Group) error) {
	t.Helper()
	check(t, world(2, ops.Config{}, func(g *ops.Group) error {
		if g.Rank() == 0 {
			return sender(g)
		}
		return receiver(g)
	}))
}

func TestSendRecv(t *testing.T) {
	for _, dt := range dtypes {
		for _, n := range []int{0, 1, 7, 100_003} {
			x := filled(dt, n, 1, false)
			two(t, func(g *ops.Group) error { return g.Send(ctx, x, 1, 5) }, func(g *ops.Group) error {
				y := tensor.New(dt, n)
				if err := g.Recv(ctx, y, 0, 5); err != nil {
					return err
				}
				if !bytes.Equal(bytesOf(x), bytesOf(y)) {
					return fmt.Errorf("%v × %d arrived changed", dt, n)
				}
				return nil
			})
		}
	}
}

// Under one tag first in, first out; between tags any order.
func TestTags(t *testing.T) {
	const many = 50
	two(t, func(g *ops.Group) error {
		for i := range int64(many) {
			if err := errors.Join(g.Send(ctx, tensor.Of([]int64{i}), 1, 1), g.Send(ctx, tensor.Of([]int64{-i}), 1, 2)); err != nil {
				return err
			}
		}
		return nil
	}, func(g *ops.Group) error {
		x := []int64{0}
		for _, tag := range []uint32{2, 1} {
			for i := range int64(many) {
				if err := g.Recv(ctx, tensor.Of(x), 0, tag); err != nil {
					return err
				}
				if want := i * (3 - 2*int64(tag)); x[0] != want {
					return fmt.Errorf("tag %d: got %d, want %d", tag, x[0], want)
				}
			}
		}
		return nil
	})
}

// Many receives may be posted before anything is sent, and both ranks may send
// far more than any window before either receives.
func TestAsync(t *testing.T) {
	const n = 1 << 20
	check(t, world(2, ops.Config{}, func(g *ops.Group) error {
		other := 1 - g.Rank()
		mine, theirs := filled(tensor.Int32, n, uint64(g.Rank()), false), tensor.New(tensor.Int32, n)
		send := g.Isend(ctx, mine, other, 0)
		recv := g.Irecv(ctx, theirs, other, 0)
		if err := errors.Join(send.Wait(), recv.Wait()); err != nil {
			return err
		}
		return want("what the other sent", theirs, filled(tensor.Int32, n, uint64(other), false))
	}))
}

// A receive that is given up takes no message along.
func TestGivenUpReceive(t *testing.T) {
	gone := errors.New("had enough")
	told := make(chan struct{})
	two(t, func(g *ops.Group) error {
		<-told
		return g.Send(ctx, tensor.Of([]int32{5}), 1, 0)
	}, func(g *ops.Group) error {
		ctx1, cancel := context.WithCancelCause(ctx)
		w := g.Irecv(ctx1, tensor.New(tensor.Int32, 1), 0, 0)
		cancel(gone)
		if err := w.Wait(); !errors.Is(err, gone) {
			return fmt.Errorf("got %v", err)
		}
		close(told)
		x := []int32{0}
		err := g.Recv(ctx, tensor.Of(x), 0, 0)
		if x[0] != 5 {
			return fmt.Errorf("got %d, %v", x[0], err)
		}
		return err
	})
}
