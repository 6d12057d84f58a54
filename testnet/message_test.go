package testnet_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet"
)

func filled(n int, b byte) []byte { return bytes.Repeat([]byte{b}, n) }

// What a completed isend has sent arrives, although its sender has exited, and
// although nobody had asked for it: from that rank, from any, and in a group.
func TestSenderExitsAfterIsend(t *testing.T) {
	const size = 150_000 // less than the window
	net := testnet.New(t, testnet.Config{Nodes: 3, Network: testnet.TCP})
	sent := make(chan struct{})
	err := net.Run(func(g *ops.Group) error {
		ctx := t.Context()
		pair, err := g.Split(ctx, []int{0, 2})
		if err != nil {
			return err
		}
		switch g.Rank() {
		case 2:
			err := errors.Join(
				g.Isend(ctx, tensor.Of(filled(size, 1)), 0, 1).Wait(),
				g.Isend(ctx, tensor.Of(filled(size, 2)), 0, 2).Wait(),
				pair.Isend(ctx, tensor.Of(filled(size, 3)), 0, 1).Wait())
			close(sent)
			return errors.Join(err, net.Leave(ctx, 2))
		case 0:
			<-sent
			x := make([]byte, size)
			from := 2
			for i, recv := range []func() error{
				func() error { return g.Recv(ctx, tensor.Of(x), 2, 1) },
				func() (err error) { from, err = g.RecvAny(ctx, tensor.Of(x), 2); return err },
				func() error { return pair.Recv(ctx, tensor.Of(x), 2, 1) },
			} {
				if err := recv(); err != nil || from != 2 || !bytes.Equal(x, filled(size, byte(i+1))) {
					return fmt.Errorf("message %d: %d from rank %d: %w", i, x[0], from, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Every rank isends to every other far more than a window that nobody has read
// from takes, before any receives.
func TestAllSendFirst(t *testing.T) {
	const n, size = 3, 4 << 20
	net := testnet.New(t, testnet.Config{Nodes: n, Network: testnet.TCP})
	var issued sync.WaitGroup
	issued.Add(n)
	err := net.Run(func(g *ops.Group) error {
		ctx := t.Context()
		mine, theirs := filled(size, byte(g.Rank())), make([]byte, size)
		var sends []*ops.Work
		for to := range n {
			if to != g.Rank() {
				sends = append(sends, g.Isend(ctx, tensor.Of(mine), to, 0))
			}
		}
		issued.Done()
		issued.Wait()
		for from := range n {
			if from == g.Rank() {
				continue
			}
			if err := g.Recv(ctx, tensor.Of(theirs), from, 0); err != nil || !bytes.Equal(theirs, filled(size, byte(from))) {
				return fmt.Errorf("from rank %d: %w", from, err)
			}
		}
		for _, w := range sends {
			if err := w.Wait(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A receive of the wrong size is told on both sides, over a real network too: to
// the sender by this send or, if the word comes late, by the next.
func TestReceiveBufferOfAnotherSize(t *testing.T) {
	const size = 4 << 20
	net := testnet.New(t, testnet.Config{Nodes: 2, Network: testnet.TCP})
	err := net.Run(func(g *ops.Group) error {
		ctx, one := t.Context(), []byte{7}
		if g.Rank() == 0 {
			first := g.Send(ctx, tensor.Of(make([]byte, size)), 1, 0)
			heard := g.Recv(ctx, tensor.Of(make([]byte, 1)), 1, 0)
			second := g.Send(ctx, tensor.Of(one), 1, 0)
			if first != nil && second != nil || heard != nil {
				return fmt.Errorf("got %w", errors.Join(first, heard, second))
			}
			return mismatch(errors.Join(first, second), 1, size, size-1)
		}
		wrong := mismatch(g.Recv(ctx, tensor.Of(make([]byte, size-1)), 0, 0), 0, size-1, size)
		x := []byte{0}
		if err := errors.Join(wrong, g.Send(ctx, tensor.Of(one), 0, 0), g.Recv(ctx, tensor.Of(x), 0, 0)); err != nil || x[0] != 7 {
			return fmt.Errorf("then %d: %w", x[0], err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func mismatch(err error, rank int, ours, theirs uint64) error {
	var m *ops.MismatchError
	if !errors.As(err, &m) || m.Rank != rank || m.Ours.Count != ours || m.Theirs.Count != theirs {
		return fmt.Errorf("want %d here and %d at rank %d, got %w", ours, theirs, rank, err)
	}
	return nil
}
