package ops_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// recvInt receives one number from a rank, or with from −1 from any.
func recvInt(g *ops.Group, from int, tag uint32) (v int64, source int, err error) {
	x := []int64{-1}
	if from < 0 {
		source, err = g.RecvAny(ctx, tensor.Of(x), tag)
	} else {
		source, err = from, g.Recv(ctx, tensor.Of(x), from, tag)
	}
	return x[0], source, err
}

func sendInt(g *ops.Group, v int64, to int, tag uint32) error {
	return g.Send(ctx, tensor.Of([]int64{v}), to, tag)
}

// Every message comes once, with the rank in the world that it came from.
func TestRecvFromAnySource(t *testing.T) {
	const n, many = 5, 40
	check(t, world(n, ops.Config{}, func(g *ops.Group) error {
		if g.Rank() != 2 {
			for i := range int64(many) {
				if err := sendInt(g, i, 2, 0); err != nil {
					return err
				}
			}
			return nil
		}
		var next [n]int64
		for range (n - 1) * many {
			v, from, err := recvInt(g, -1, 0)
			if err != nil {
				return err
			}
			if v != next[from] {
				return fmt.Errorf("message %d of rank %d came when %d was next", v, from, next[from])
			}
			next[from]++
		}
		return nil
	}))
}

// The receive that was issued first takes the message, whatever the kinds; and a
// receive that another message has settled is in nobody's way.
func TestAnySourceKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		worlds := memnet.New(3)
		check(t, on(worlds, ops.Config{}, func(g *ops.Group) error {
			if g.Rank() == 0 {
				return orderOfReceives(g)
			}
			time.Sleep(time.Duration(g.Rank()) * time.Second) // all are posted; rank 1 is first
			for i := range int64(3) {
				if err := sendInt(g, 10*int64(g.Rank())+i, 0, 4); err != nil {
					return err
				}
			}
			return nil
		}))
	})
}

func orderOfReceives(g *ops.Group) error {
	x := make([][]int64, 6)
	var works []*ops.Work
	for i, from := range []int{1, -1, 1, -1, 2, 2} {
		x[i] = []int64{-1}
		if from < 0 {
			works = append(works, g.IrecvAny(ctx, tensor.Of(x[i]), 4))
		} else {
			works = append(works, g.Irecv(ctx, tensor.Of(x[i]), from, 4))
		}
	}
	// Rank 1 sends all of its three before rank 2 its first.
	for i, want := range []int64{10, 11, 12, 20, 21, 22} {
		if err := works[i].Wait(); err != nil {
			return fmt.Errorf("receive %d: %w", i, err)
		}
		if from := works[i].Source(); x[i][0] != want || int64(from) != want/10 {
			return fmt.Errorf("receive %d got %d from %d, want %d", i, x[i][0], from, want)
		}
	}
	return nil
}

// Tags keep apart, and what any receive did not take is there for the next.
func TestAnySourceAndTags(t *testing.T) {
	check(t, world(3, ops.Config{}, func(g *ops.Group) error {
		if g.Rank() > 0 {
			return errors.Join(sendInt(g, 5, 0, 5), sendInt(g, 6, 0, 6))
		}
		for _, tag := range []uint32{6, 5} {
			for range 2 {
				if v, _, err := recvInt(g, -1, tag); err != nil || v != int64(tag) {
					return fmt.Errorf("tag %d: %d, %w", tag, v, err)
				}
			}
		}
		return nil
	}))
}

// A receive from any source that is given up takes no message along.
func TestGivenUpAnySource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("had enough")
		check(t, world(3, ops.Config{}, func(g *ops.Group) error {
			if g.Rank() > 0 {
				time.Sleep(time.Minute)
				return sendInt(g, 7, 0, 0)
			}
			c, cancel := context.WithCancelCause(ctx)
			w := g.IrecvAny(c, tensor.Of([]int64{0}), 0)
			time.Sleep(time.Second)
			cancel(gone)
			if err := w.Wait(); !errors.Is(err, gone) || w.Source() != -1 {
				return fmt.Errorf("from %d: %w", w.Source(), err)
			}
			for range 2 {
				if v, _, err := recvInt(g, -1, 0); v != 7 {
					return fmt.Errorf("got %d: %w", v, err)
				}
			}
			return nil
		}))
	})
}

func TestAnySourceTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		g := ops.NewGroup(memnet.New(2)[0], ops.Config{Timeout: time.Minute})
		if _, err := g.RecvAny(ctx, f32(1), 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if d := time.Since(start); d != time.Minute {
			t.Errorf("after %v", d)
		}
	})
}

func TestAnySourceWhenTheWorldEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		worlds := memnet.New(3)
		w := ops.NewGroup(worlds[0], ops.Config{}).IrecvAny(ctx, f32(1), 0)
		worlds[2].Kill()
		if err := w.Wait(); !errors.Is(err, memnet.ErrKilled) {
			t.Errorf("got %v", err)
		}
	})
}

// A message of the wrong size is claimed, named and taken off, as with Recv.
func TestAnySourceMismatch(t *testing.T) {
	check(t, world(3, ops.Config{}, func(g *ops.Group) error {
		var m *ops.MismatchError
		if g.Rank() == 1 {
			if err := g.Send(ctx, f32(3), 0, 0); err != nil && !errors.As(err, &m) { // it may hear of it in time
				return err
			}
		}
		if g.Rank() > 0 {
			return nil
		}
		from, err := g.RecvAny(ctx, f32(4), 0)
		if !errors.As(err, &m) || from != 1 || m.Rank != 1 || m.Theirs.Count != 3 || m.Ours.Count != 4 {
			return fmt.Errorf("from %d: %w", from, err)
		}
		return nil
	}))
}

func TestAnySourceArguments(t *testing.T) {
	alone := ops.NewGroup(memnet.New(1)[0], ops.Config{})
	two := ops.NewGroup(memnet.New(2)[0], ops.Config{})
	for name, w := range map[string]*ops.Work{
		"alone": alone.IrecvAny(ctx, f32(1), 0), "tag": two.IrecvAny(ctx, f32(1), ops.MaxTag+1), "zero": two.IrecvAny(ctx, tensor.Tensor{}, 0),
	} {
		if w.Wait() == nil || w.Source() != -1 {
			t.Errorf("%s: from %d, %v", name, w.Source(), w.Wait())
		}
	}
}
