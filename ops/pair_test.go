package ops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

// A send that the transport can take whole is done before anyone has asked for
// it, as is the case in memnet up to 256 KiB with heads; a larger one is not.
func TestSendReturnsWhenTheBufferIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window, head, packet = 256 << 10, 48, 64 << 10
		fits := window - head*(window/packet)
		check(t, world(2, ops.Config{}, func(g *ops.Group) error {
			small, large := tensor.New(tensor.Uint8, fits), tensor.New(tensor.Uint8, fits+1)
			if g.Rank() == 1 {
				time.Sleep(time.Minute)
				return errors.Join(g.Recv(ctx, large, 0, 2), g.Recv(ctx, small, 0, 1))
			}
			start := time.Now()
			if err := g.Send(ctx, small, 1, 1); err != nil || time.Since(start) > 0 {
				return fmt.Errorf("a small send took %v: %w", time.Since(start), err)
			}
			if err := g.Send(ctx, large, 1, 2); err != nil || time.Since(start) < time.Minute {
				return fmt.Errorf("a large send took %v: %w", time.Since(start), err)
			}
			return nil
		}))
	})
}

// A receive buffer of another size, larger or smaller, or of another type: an
// error that names both, on the receiver at once and on the sender with this send,
// if it is still in flight, or else with its next; the next message arrives.
func TestReceiveBufferOfAnotherSize(t *testing.T) {
	const small, large = 10, 300_000
	for _, n := range []int{small, large} {
		for _, y := range []tensor.Tensor{f32(n - 1), f32(n + 1), tensor.New(tensor.Int32, n)} {
			synctest.Test(t, func(t *testing.T) {
				two(t, func(g *ops.Group) error {
					first := g.Send(ctx, f32(n), 1, 0)
					if n == small && first != nil { // it is done before it is received
						return first
					}
					time.Sleep(time.Minute)
					second := g.Send(ctx, filled(tensor.Float32, n, 2, false), 1, 0)
					third := g.Send(ctx, filled(tensor.Float32, n, 3, false), 1, 0)
					told := errors.Join(first, second)
					if first != nil && second != nil || third != nil {
						return fmt.Errorf("told more than once: %w", errors.Join(told, third))
					}
					return mismatch(told, 1, n, y.Len())
				}, func(g *ops.Group) error {
					time.Sleep(time.Second)
					if err := mismatch(g.Recv(ctx, y, 0, 0), 0, y.Len(), n); err != nil {
						return err
					}
					x := f32(n)
					for i := range uint64(2) {
						if err := g.Recv(ctx, x, 0, 0); err != nil {
							return err
						}
						if err := want("the next", x, filled(tensor.Float32, n, 2+i, false)); err != nil {
							return err
						}
					}
					return nil
				})
			})
		}
	}
}

func mismatch(err error, rank, ours, theirs int) error {
	var m *ops.MismatchError
	if !errors.As(err, &m) || m.Rank != rank || m.Ours.Count != uint64(ours) || m.Theirs.Count != uint64(theirs) {
		return fmt.Errorf("want %d here and %d at rank %d, got %w", ours, theirs, rank, err)
	}
	for _, n := range []int{ours, theirs} {
		if !strings.Contains(err.Error(), fmt.Sprintf("× %d)", n)) {
			return fmt.Errorf("does not name %d: %w", n, err)
		}
	}
	return nil
}

// Complaints that nobody waits for are bounded.
func TestManyRefusals(t *testing.T) {
	const many = 100
	synctest.Test(t, func(t *testing.T) {
		two(t, func(g *ops.Group) error {
			var works []*ops.Work
			for range many {
				works = append(works, g.Isend(ctx, f32(1), 1, 0))
			}
			time.Sleep(time.Minute)
			told := 0
			for range many {
				works = append(works, g.Isend(ctx, f32(2), 1, 0))
			}
			for _, w := range works {
				if errors.As(w.Wait(), new(*ops.MismatchError)) {
					told++
				}
			}
			if told == 0 || told > many {
				return fmt.Errorf("told of %d refusals", told)
			}
			return nil
		}, func(g *ops.Group) error {
			for range many {
				if err := g.Recv(ctx, f32(2), 0, 0); !errors.As(err, new(*ops.MismatchError)) {
					return err
				}
			}
			for range many {
				if err := g.Recv(ctx, f32(2), 0, 0); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// All ranks send far more than any window to all others, and only then receive.
// That ends, and in the meantime holds no copies but what the lanes hold.
func TestAllSendFirst(t *testing.T) {
	const n, size = 4, 8 << 20
	synctest.Test(t, func(t *testing.T) {
		mine := tensor.New(tensor.Uint8, size) // read only: all ranks send it
		in := tensor.New(tensor.Uint8, size)   // written by one at a time
		before := heap()
		var after uint64
		var one sync.Mutex
		check(t, world(n, ops.Config{}, func(g *ops.Group) error {
			var sends []*ops.Work
			for to := range n {
				if to != g.Rank() {
					sends = append(sends, g.Isend(ctx, mine, to, 0))
				}
			}
			time.Sleep(time.Minute)
			if g.Rank() == 0 {
				after = heap()
			}
			time.Sleep(time.Minute)
			for from := range n {
				if from == g.Rank() {
					continue
				}
				one.Lock()
				err := g.Recv(ctx, in, from, 0)
				one.Unlock()
				if err != nil {
					return err
				}
			}
			for _, w := range sends {
				if err := w.Wait(); err != nil {
					return err
				}
			}
			return nil
		}))
		if held := int64(after) - int64(before); held > 2*n*(n-1)*(256<<10) {
			t.Errorf("%d bytes held for %d of messages", held, n*(n-1)*size)
		}
	})
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestSourceOfAReceive(t *testing.T) {
	two(t, func(g *ops.Group) error {
		if w := g.Isend(ctx, f32(1), 1, 0); w.Source() != -1 {
			return fmt.Errorf("a send has source %d", w.Source())
		}
		return nil
	}, func(g *ops.Group) error {
		if w := g.Irecv(ctx, f32(1), 0, 0); w.Source() != 0 {
			return fmt.Errorf("source %d", w.Source())
		}
		return nil
	})
}
