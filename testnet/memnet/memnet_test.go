package memnet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"testing"
	"testing/synctest"

	"peermesh/testnet/memnet"
)

var ctx = context.Background()

func pieces(ps ...[]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, p := range ps {
			if !yield(p, nil) {
				return
			}
		}
	}
}

func send(w *memnet.World, to int, tag byte, ps ...[]byte) error {
	return w.Send(ctx, to, 1, [40]byte{tag}, int64(len(bytes.Join(ps, nil))), pieces(ps...))
}

func recv(w *memnet.World, from int) (tag byte, p []byte, err error) {
	err = w.Recv(ctx, from, 1,
		func(t [40]byte, n int64) error { tag = t[0]; return nil },
		func(b []byte) error { p = append(p, b...); return nil })
	return tag, p, err
}

// Messages arrive whole and in order, however they are cut, and every piece but
// a message's last is a multiple of 16 bytes.
func TestMessages(t *testing.T) {
	w := memnet.New(2)
	for i, cuts := range [][]int{{}, {1}, {3, 16381, 5}, {100_000}, {0, 7, 0}, {16384, 1}} {
		var ps [][]byte
		for j, n := range cuts {
			ps = append(ps, bytes.Repeat([]byte{byte(i + j)}, n))
		}
		if err := send(w[0], 1, byte(i), ps...); err != nil {
			t.Fatal(err)
		}
		total := len(bytes.Join(ps, nil))
		var got []byte
		err := w[1].Recv(ctx, 0, 1, func(tag [40]byte, n int64) error {
			if tag[0] != byte(i) || n != int64(total) {
				return fmt.Errorf("tag %d, %d bytes", tag[0], n)
			}
			return nil
		}, func(p []byte) error {
			if got = append(got, p...); len(p)%16 != 0 && len(got) != total {
				return fmt.Errorf("piece of %d bytes", len(p))
			}
			return nil
		})
		if err != nil || !bytes.Equal(got, bytes.Join(ps, nil)) {
			t.Errorf("%v: %v", cuts, err)
		}
	}
	if got := w[0].Sent(); got != 3+16381+5+1+100_000+7+16385 {
		t.Errorf("counted %d bytes", got)
	}
}

func TestRefusedMessageStays(t *testing.T) {
	w := memnet.New(2)
	no := errors.New("no")
	if err := send(w[0], 1, 9, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w[1].Recv(ctx, 0, 1, func([40]byte, int64) error { return no }, nil); err != no {
			t.Fatalf("got %v", err)
		}
	}
	if tag, p, err := recv(w[1], 0); err != nil || tag != 9 || string(p) != "hello" {
		t.Errorf("got %d %q %v", tag, p, err)
	}
}

// A sender is held back at the window and let go by the receiver.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := memnet.New(2)
		sent := 0
		done := make(chan error, 1)
		go func() {
			for range 100 {
				if err := send(w[0], 1, 0, make([]byte, 10_000)); err != nil {
					done <- err
					return
				}
				sent++
			}
			done <- nil
		}()
		synctest.Wait()
		if sent == 0 || sent > 27 {
			t.Errorf("%d messages of 10,000 bytes passed a window of 256 KiB", sent)
		}
		for range 100 {
			if _, _, err := recv(w[1], 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestContextsAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := memnet.New(3)
		why := errors.New("why")
		c, cancel := context.WithCancelCause(ctx)
		errs := make(chan error, 2)
		go func() {
			errs <- w[0].Recv(c, 1, 1, func([40]byte, int64) error { return nil }, nil)
		}()
		synctest.Wait()
		cancel(why)
		if err := <-errs; !errors.Is(err, why) {
			t.Errorf("cancelled: %v", err)
		}
		go func() { _, _, err := recv(w[0], 1); errs <- err }()
		go func() { errs <- send(w[1], 2, 0, make([]byte, 1<<20)) }()
		synctest.Wait()
		w[2].Kill()
		for range 2 {
			if err := <-errs; !errors.Is(err, memnet.ErrKilled) {
				t.Errorf("killed: %v", err)
			}
		}
		w[0].End(why) // too late to matter
		if cause := context.Cause(w[1].Context()); !errors.Is(cause, memnet.ErrKilled) {
			t.Errorf("cause: %v", cause)
		}
		if err := send(w[0], 1, 0); !errors.Is(err, memnet.ErrKilled) {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// A receive that is given up just as a message comes leaves it whole.
func TestGivenUpLeavesTheMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := memnet.New(2)
		for i := range 1000 {
			c, cancel := context.WithCancel(ctx)
			done := make(chan error, 1)
			go func() {
				done <- w[1].Recv(c, 0, 1, func([40]byte, int64) error { return errors.New("no") }, nil)
			}()
			synctest.Wait()
			cancel()
			if err := send(w[0], 1, byte(i), []byte("hello")); err != nil {
				t.Fatal(err)
			}
			<-done
			if tag, p, err := recv(w[1], 0); err != nil || tag != byte(i) || string(p) != "hello" {
				t.Fatalf("message %d: got %d %q %v", i, tag, p, err)
			}
		}
	})
}

// An error in mid-message breaks the lane, but not what was sent before.
func TestBrokenLane(t *testing.T) {
	broken := errors.New("staging failed")
	bad := map[string]struct {
		parts iter.Seq2[[]byte, error]
		want  error
	}{
		"error": {func(yield func([]byte, error) bool) { yield(nil, broken) }, broken},
		"short": {pieces([]byte("abc")), io.ErrUnexpectedEOF},
		"long":  {pieces(make([]byte, 11)), nil},
	}
	for name, c := range bad {
		w := memnet.New(2)
		if err := send(w[0], 1, 1, []byte("whole")); err != nil {
			t.Fatal(err)
		}
		err := w[0].Send(ctx, 1, 1, [40]byte{}, 10, c.parts)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, p, err := recv(w[1], 0); err != nil || string(p) != "whole" {
			t.Errorf("%s: the message before: %q, %v", name, p, err)
		}
		if _, _, err := recv(w[1], 0); err == nil {
			t.Errorf("%s: half a message arrived", name)
		}
		if err := send(w[0], 1, 0); err == nil {
			t.Errorf("%s: the lane still sends", name)
		}
	}
}

func TestSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := memnet.New(2)
		var got []byte
		w[1].OnSignal(5, func(from int, p []byte) { got = append(got, p...) })
		for i := range byte(100) {
			if err := errors.Join(w[0].Signal(1, 5, []byte{i}), w[0].Signal(1, 6, []byte{0})); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if len(got) != 100 || !slices.IsSorted(got) {
			t.Errorf("got %v", got)
		}
		w[1].OnSignal(5, nil)
		if err := w[0].Signal(1, 5, []byte{1}); err != nil {
			t.Error(err)
		}
		for _, bad := range []error{w[0].Signal(0, 5, nil), w[0].Signal(2, 5, nil), w[0].Signal(1, 5, make([]byte, 513))} {
			if bad == nil {
				t.Error("a bad signal passed")
			}
		}
		synctest.Wait()
		if len(got) != 100 {
			t.Error("a removed handler was called")
		}
	})
}

func TestNoSuchLane(t *testing.T) {
	w := memnet.New(2)
	for _, to := range []int{-1, 0, 2} {
		if err := send(w[0], to, 0); err == nil {
			t.Errorf("sent to rank %d", to)
		}
	}
}

func Example() {
	worlds := memnet.New(2)
	go func() {
		_ = send(worlds[0], 1, 7, []byte("hello"))
	}()
	tag, p, err := recv(worlds[1], 0)
	fmt.Println(tag, string(p), err)
	// Output: 7 hello <nil>
}
