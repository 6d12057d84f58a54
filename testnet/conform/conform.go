// Package conform is the suite that holds a Transport to its contract: what
// ops.Transport promises in words, it tries, and then, by Collectives, whether
// groups compute on it what they should. The worlds of mesh and memnet pass both; a
// Transport of one's own should:
//
//	func TestConform(t *testing.T) {
//		worlds := func(t *testing.T, n int) []ops.Transport { … }
//		conform.Transport(t, worlds)
//		conform.Collectives(t, worlds)
//	}
package conform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/ops"
)

// beyond is a message longer than the window of any lane, in bytes.
const beyond = 20 << 20

// wait bounds every step of the suite that could block.
const wait = 20 * time.Second

// Make returns the ends of a new world of n ranks, by rank, that last until the
// test ends.
type Make func(t *testing.T, n int) []ops.Transport

// A part is one test of a suite.
type part struct {
	name string
	test func(t *testing.T, worlds Make)
}

var transport = []part{
	{"Ranks", ranks}, {"Messages", messages}, {"Order", order}, {"Lanes", lanes},
	{"Refused", refused}, {"GivenUp", givenUp}, {"BrokenSend", brokenSend}, {"BrokenLand", brokenLand},
	{"Signals", signals}, {"End", end}, {"Bounds", bounds},
}

// Transport runs the suite.
func Transport(t *testing.T, worlds Make) { run(t, transport, worlds, false) }

// VirtualTransport runs it with each part in a bubble of testing/synctest of its
// own, where worlds is called too.
func VirtualTransport(t *testing.T, worlds Make) { run(t, transport, worlds, true) }

func run(t *testing.T, suite []part, worlds Make, virtual bool) {
	for _, p := range suite {
		t.Run(p.name, func(t *testing.T) {
			if virtual {
				synctest.Test(t, func(t *testing.T) { p.test(t, worlds) })
				return
			}
			p.test(t, worlds)
		})
	}
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	t.Cleanup(cancel)
	return ctx
}

// pieces yields p cut at the given lengths, and then the rest.
func pieces(p []byte, cuts ...int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, n := range append(cuts, len(p)) {
			n = min(n, len(p))
			if !yield(p[:n], nil) {
				return
			}
			p = p[n:]
		}
	}
}

// numbered are n bytes that show when any are lost, doubled or moved.
func numbered(n int, seed byte) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i) ^ byte(i>>8)*7 ^ byte(i>>16)*31 ^ seed
	}
	return p
}

func send(ctx context.Context, w ops.Transport, to int, lane uint64, p []byte, cuts ...int) error {
	return w.Send(ctx, to, lane, ops.Tag{p0(p), 2, 39: 3}, int64(len(p)), pieces(p, cuts...))
}

func p0(p []byte) byte {
	if len(p) == 0 {
		return 0
	}
	return p[0]
}

// recv takes a message and checks its tag, its length and its pieces.
func recv(ctx context.Context, w ops.Transport, from int, lane uint64) (p []byte, err error) {
	var tag ops.Tag
	var size int64
	err = w.Recv(ctx, from, lane, func(t ops.Tag, n int64) error { tag, size = t, n; return nil }, func(b []byte) error {
		if p = append(p, b...); len(b)%16 != 0 && int64(len(p)) != size {
			return fmt.Errorf("conform: a piece of %d bytes in mid-message", len(b))
		}
		return nil
	})
	if err == nil && (int64(len(p)) != size || tag != ops.Tag{p0(p), 2, 39: 3}) {
		err = fmt.Errorf("conform: %d bytes announced, %d came, tag %v", size, len(p), tag)
	}
	return p, err
}

// both runs the two sides of a conversation.
func both(t *testing.T, f, g func() error) {
	t.Helper()
	errs := make([]error, 2)
	var wg sync.WaitGroup
	wg.Go(func() { errs[0] = f() })
	wg.Go(func() { errs[1] = g() })
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

func ranks(t *testing.T, worlds Make) {
	for _, n := range []int{1, 3} {
		for r, w := range worlds(t, n) {
			if w.Rank() != r || w.Size() != n || w.Context().Err() != nil {
				t.Errorf("end %d of %d says rank %d of %d, context %v", r, n, w.Rank(), w.Size(), w.Context().Err())
			}
		}
	}
}

func messages(t *testing.T, worlds Make) {
	w, ctx := worlds(t, 2), within(t)
	for i, n := range []int{0, 1, 15, 16, 17, 4096, 16_383, 70_001, 3 << 20} {
		for _, cuts := range [][]int{nil, {0, 1}, {n / 3, 0, n / 2}} {
			p := numbered(n, byte(i))
			both(t, func() error { return send(ctx, w[0], 1, 5, p, cuts...) }, func() error {
				got, err := recv(ctx, w[1], 0, 5)
				if err == nil && !bytes.Equal(got, p) {
					err = fmt.Errorf("%d bytes cut at %v arrived changed", n, cuts)
				}
				return err
			})
		}
	}
}

// Messages keep their order in each direction, and the directions do not mind
// each other.
func order(t *testing.T, worlds Make) {
	const many = 200
	w, ctx := worlds(t, 2), within(t)
	talk := func(me int) func() error {
		return func() error {
			for i := range many {
				if err := send(ctx, w[me], 1-me, 0, numbered(1+i*7, byte(i))); err != nil {
					return err
				}
				got, err := recv(ctx, w[me], 1-me, 0)
				if err != nil {
					return err
				}
				if !bytes.Equal(got, numbered(1+i*7, byte(i))) {
					return fmt.Errorf("message %d is another", i)
				}
			}
			return nil
		}
	}
	both(t, talk(0), talk(1))
}

// A lane that nobody reads holds up no other.
func lanes(t *testing.T, worlds Make) {
	w, ctx := worlds(t, 2), within(t)
	full := numbered(beyond, 1)
	both(t, func() error { return send(ctx, w[0], 1, 0, full) }, func() error {
		for lane := uint64(1); lane < 40; lane++ {
			p := numbered(100, byte(lane))
			if err := send(ctx, w[0], 1, lane<<32, p); err != nil {
				return err
			}
			if got, err := recv(ctx, w[1], 0, lane<<32); err != nil || !bytes.Equal(got, p) {
				return fmt.Errorf("lane %d: %w", lane, err)
			}
		}
		got, err := recv(ctx, w[1], 0, 0)
		if err == nil && !bytes.Equal(got, full) {
			err = errors.New("the large message arrived changed")
		}
		return err
	})
}

// A message that is not accepted stays.
func refused(t *testing.T, worlds Make) {
	w, ctx := worlds(t, 2), within(t)
	no := errors.New("no")
	if err := send(ctx, w[0], 1, 0, numbered(1000, 9)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		err := w[1].Recv(ctx, 0, 0, func(ops.Tag, int64) error { return no }, func([]byte) error { return errors.New("landed") })
		if !errors.Is(err, no) {
			t.Fatalf("not accepted: %v", err)
		}
	}
	if got, err := recv(ctx, w[1], 0, 0); err != nil || !bytes.Equal(got, numbered(1000, 9)) {
		t.Errorf("then: %d bytes, %v", len(got), err)
	}
}

// A Recv that is given up before a message came harms nothing, nor does a Send
// whose context has ended before it began.
func givenUp(t *testing.T, worlds Make) {
	w, ctx := worlds(t, 2), within(t)
	why := errors.New("given up")
	gone, cancel := context.WithCancelCause(ctx)
	started := time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
	defer started.Stop()
	if _, err := recv(gone, w[1], 0, 0); !errors.Is(err, why) {
		t.Errorf("recv: %v", err)
	}
	if err := send(gone, w[0], 1, 0, nil); !errors.Is(err, why) {
		t.Errorf("send: %v", err)
	}
	p := numbered(100, 3)
	both(t, func() error { return send(ctx, w[0], 1, 0, p) }, func() error {
		got, err := recv(ctx, w[1], 0, 0)
		if err == nil && !bytes.Equal(got, p) {
			err = errors.New("arrived changed")
		}
		return err
	})
}
