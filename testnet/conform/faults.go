package conform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"

	"peermesh/ops"
)

// A Send that fails in mid-message breaks its lane and no other; what was sent
// before arrives.
func brokenSend(t *testing.T, worlds Make) {
	bad := errors.New("could not be read")
	long := numbered(1<<20, 0)
	for name, parts := range map[string]iter.Seq2[[]byte, error]{
		"error": func(yield func([]byte, error) bool) { _ = yield(long, nil) && yield(nil, bad) },
		"short": pieces(long),
	} {
		w, ctx := worlds(t, 2), within(t)
		whole := numbered(100, 1)
		if err := send(ctx, w[0], 1, 0, whole); err != nil {
			t.Fatal(err)
		}
		both(t, func() error {
			err := w[0].Send(ctx, 1, 0, ops.Tag{}, int64(len(long)+1), parts)
			if err == nil || name == "error" && !errors.Is(err, bad) {
				return fmt.Errorf("%s: sent with %w", name, err)
			}
			return nil
		}, func() error {
			if got, err := recv(ctx, w[1], 0, 0); err != nil || !bytes.Equal(got, whole) {
				return fmt.Errorf("%s: the message before: %d bytes, %w", name, len(got), err)
			}
			if _, err := recv(ctx, w[1], 0, 0); err == nil || ctx.Err() != nil {
				return fmt.Errorf("%s: half a message came with %w", name, err)
			}
			return nil
		})
		if err := send(ctx, w[0], 1, 0, whole); err == nil {
			t.Errorf("%s: the broken lane sends", name)
		}
		both(t, func() error { return send(ctx, w[0], 1, 1, whole) },
			func() error { _, err := recv(ctx, w[1], 0, 1); return err })
	}
}

func brokenLand(t *testing.T, worlds Make) {
	w, ctx := worlds(t, 2), within(t)
	full := errors.New("no room")
	both(t, func() error { return send(ctx, w[0], 1, 0, numbered(100, 1)) }, func() error {
		err := w[1].Recv(ctx, 0, 0, func(ops.Tag, int64) error { return nil }, func([]byte) error { return full })
		if !errors.Is(err, full) {
			return fmt.Errorf("landed with %w", err)
		}
		return nil
	})
	if _, err := recv(ctx, w[1], 0, 0); err == nil || ctx.Err() != nil {
		t.Errorf("the broken lane receives: %v", err)
	}
}

func signals(t *testing.T, worlds Make) {
	const many = 50
	w, ctx := worlds(t, 3), within(t)
	type heard struct {
		from int
		p    byte
	}
	got := newBox[heard](2 * many)
	w[2].OnSignal(7, func(from int, p []byte) {
		if len(p) == ops.MaxSignal {
			got.put(heard{from, p[0]})
		}
	})
	p := bytes.Repeat([]byte{0}, ops.MaxSignal)
	for i := range byte(many) {
		p[0] = i
		for from := range 2 {
			if err := errors.Join(w[from].Signal(2, 7, p), w[from].Signal(2, 8, p)); err != nil {
				t.Fatal(err)
			}
		}
	}
	next := [2]byte{}
	for range 2 * many {
		h, err := got.take(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if h.p != next[h.from] {
			t.Fatalf("signal %d of rank %d came as number %d", h.p, h.from, next[h.from])
		}
		next[h.from]++
	}
	if err := w[0].Signal(2, 7, append(p, 0)); err == nil {
		t.Error("a signal that is too long passed")
	}
}

// The end of a world ends it everywhere, for one cause, and frees whoever waits.
func end(t *testing.T, worlds Make) {
	w, ctx := worlds(t, 3), within(t)
	why := errors.New("the reason why")
	errs := make([]error, 3)
	var wg sync.WaitGroup
	wg.Go(func() { _, errs[0] = recv(ctx, w[0], 1, 0) })
	wg.Go(func() { errs[1] = send(ctx, w[1], 0, 1, numbered(beyond, 0)) })
	w[2].End(why)
	wg.Wait()
	_, errs[2] = recv(ctx, w[2], 0, 0)
	for r, err := range errs {
		cause := context.Cause(w[r].Context())
		if cause == nil || !bytes.Contains([]byte(cause.Error()), []byte(why.Error())) {
			t.Errorf("rank %d: the cause is %v", r, cause)
		}
		if err == nil || !errors.Is(err, cause) {
			t.Errorf("rank %d: got %v", r, err)
		}
	}
	first := context.Cause(w[0].Context())
	w[0].End(errors.New("another"))
	if got := context.Cause(w[0].Context()); got != first {
		t.Errorf("the cause became %v", got)
	}
}

func bounds(t *testing.T, worlds Make) {
	w, ctx := worlds(t, 2), within(t)
	for _, rank := range []int{-1, 0, 2} {
		if err := send(ctx, w[0], rank, 0, nil); err == nil {
			t.Errorf("sent to rank %d", rank)
		}
		if _, err := recv(ctx, w[0], rank, 0); err == nil {
			t.Errorf("received from rank %d", rank)
		}
		if err := w[0].Signal(rank, 0, nil); err == nil {
			t.Errorf("signalled rank %d", rank)
		}
	}
}

// A box hands values from a handler, which must not block, to the test.
type box[T any] chan T

func newBox[T any](n int) box[T] { return make(chan T, n) }

func (b box[T]) put(v T) {
	select {
	case b <- v:
	default: // more than were sent: take finds them out of order
	}
}

func (b box[T]) take(ctx context.Context) (v T, err error) {
	select {
	case v = <-b:
		return v, nil
	case <-ctx.Done():
		return v, context.Cause(ctx)
	}
}
