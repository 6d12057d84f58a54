package mesh

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"peermesh/node"
)

func tagged(i uint64) (tag [tagSize]byte) {
	binary.LittleEndian.PutUint64(tag[:], i)
	return tag
}

func seq(tag [tagSize]byte) uint64 { return binary.LittleEndian.Uint64(tag[:]) }

// pieces yields p cut into pieces of random lengths.
func pieces(p []byte, most int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for len(p) > 0 {
			n := min(len(p), 1+rand.N(most))
			if !yield(p[:n:n], nil) {
				return
			}
			p = p[n:]
		}
	}
}

func whole(p []byte) iter.Seq2[[]byte, error] { return pieces(p, max(1, 2*len(p))) }

func noise(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(rand.Uint32())
	}
	return p
}

// take receives one message whole, and checks the promise on pieces.
func take(ctx context.Context, w *World, from int, lane uint64) (tag [tagSize]byte, p []byte, err error) {
	var size int64
	err = w.Recv(ctx, from, lane, func(t [tagSize]byte, n int64) error {
		tag, size = t, n
		return nil
	}, func(b []byte) error {
		if int64(len(p)+len(b)) < size && len(b)%pieceAlign != 0 {
			return fmt.Errorf("a piece of %d bytes in the middle", len(b))
		}
		p = append(p, b...)
		return nil
	})
	if err == nil && int64(len(p)) != size {
		err = fmt.Errorf("%d bytes of %d", len(p), size)
	}
	return tag, p, err
}

func TestMessages(t *testing.T) {
	for name, listen := range map[string]string{"tcp": loopback, "quic": "/ip4/127.0.0.1/udp/0/quic-v1"} {
		t.Run(name, func(t *testing.T) {
			p := formOn(t, 2, Config{}, listen)
			sizes := []int{0, 1, 15, 16, 17, 4, 0, joinSize - 1, joinSize, joinSize + 1, 100_003, laneBuffer, 5<<20 + 7, 3, 0}
			data, sums := make([][]byte, len(sizes)), make([]uint32, len(sizes))
			for i, n := range sizes {
				data[i] = noise(n)
				sums[i] = crc32.ChecksumIEEE(data[i])
			}
			each(t, 2, func(rank int) error {
				for i, n := range sizes {
					if rank == 0 {
						if err := p.worlds[0].Send(t.Context(), 1, 7, tagged(uint64(i)), int64(n), pieces(data[i], n+1)); err != nil {
							return err
						}
						continue
					}
					tag, got, err := take(t.Context(), p.worlds[1], 0, 7)
					if err != nil {
						return err
					}
					if seq(tag) != uint64(i) || len(got) != n || crc32.ChecksumIEEE(got) != sums[i] {
						return fmt.Errorf("message %d of %d bytes: tag %d, %d bytes", i, n, seq(tag), len(got))
					}
				}
				return nil
			})
		})
	}
}

func TestManyLanesBothWays(t *testing.T) {
	const ranks, lanes, rounds = 3, 20, 5
	p := form(t, ranks, Config{})
	var wg sync.WaitGroup
	fail := make(chan error, 1)
	report := func(err error) {
		if err != nil {
			select {
			case fail <- err:
			default:
			}
		}
	}
	for a := range ranks {
		for b := range ranks {
			if a == b {
				continue
			}
			for lane := range uint64(lanes) {
				data := bytes.Repeat([]byte{byte(lane)}, 1000*int(lane))
				wg.Go(func() {
					for i := range rounds {
						report(p.worlds[a].Send(t.Context(), b, lane, tagged(uint64(i)), int64(len(data)), whole(data)))
					}
				})
				wg.Go(func() {
					for i := range rounds {
						tag, got, err := take(t.Context(), p.worlds[b], a, lane)
						if err == nil && (seq(tag) != uint64(i) || !bytes.Equal(got, data)) {
							err = fmt.Errorf("lane %d of %d→%d: message %d is another", lane, a, b, i)
						}
						report(err)
					}
				})
			}
		}
	}
	wg.Wait()
	select {
	case err := <-fail:
		t.Fatal(err)
	default:
	}
}

func TestAcceptErrorLeavesTheMessage(t *testing.T) {
	p := form(t, 2, Config{})
	data := noise(100_000)
	each(t, 2, func(rank int) error {
		w := p.worlds[rank]
		if rank == 0 {
			return w.Send(t.Context(), 1, 0, tagged(1), int64(len(data)), whole(data))
		}
		no := errors.New("not yet")
		for range 3 {
			err := w.Recv(t.Context(), 0, 0, func([tagSize]byte, int64) error { return no }, nil)
			if err != no {
				return fmt.Errorf("accept's error came back as %w", err)
			}
		}
		_, got, err := take(t.Context(), w, 0, 0)
		if err == nil && !bytes.Equal(got, data) {
			err = errors.New("the message changed")
		}
		return err
	})
}

func TestCancelBeforeTheMessageHarmsNothing(t *testing.T) {
	p := form(t, 2, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	for _, open := range []bool{false, true} {
		time.AfterFunc(20*time.Millisecond, cancel)
		if _, _, err := take(ctx, p.worlds[1], 0, 0); !errors.Is(err, context.Canceled) {
			t.Fatalf("lane open %v: %v", open, err)
		}
		each(t, 2, func(rank int) error {
			if rank == 0 {
				return p.worlds[0].Send(t.Context(), 1, 0, tagged(1), 5, whole([]byte("hello")))
			}
			_, got, err := take(t.Context(), p.worlds[1], 0, 0)
			if err == nil && string(got) != "hello" {
				err = fmt.Errorf("got %q", got)
			}
			return err
		})
		ctx, cancel = context.WithCancel(t.Context())
	}
	cancel()
	if err := p.worlds[0].Send(ctx, 1, 0, tagged(1), 0, whole(nil)); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := p.worlds[0].Send(t.Context(), 1, 0, tagged(1), 0, whole(nil)); err != nil {
		t.Fatal(err)
	}
}

func TestCancelInMidMessageBreaksTheLane(t *testing.T) {
	p := form(t, 2, Config{})
	const size = 64 << 20 // well over any window
	big := make([]byte, size)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan struct{})
	each(t, 2, func(rank int) error {
		if rank == 0 {
			err := p.worlds[0].Send(ctx, 1, 3, tagged(1), size, whole(big))
			if !errors.Is(err, context.Canceled) {
				return fmt.Errorf("cancelled send: %w", err)
			}
			if err := p.worlds[0].Send(t.Context(), 1, 3, tagged(1), 0, whole(nil)); err == nil {
				return errors.New("a broken lane took a message")
			}
			return nil
		}
		first := true
		err := p.worlds[1].Recv(t.Context(), 0, 3, func([tagSize]byte, int64) error { return nil }, func([]byte) error {
			if first {
				first = false
				close(got)
				cancel()
			}
			return nil
		})
		if !errors.Is(err, node.ErrGaveUp) {
			return fmt.Errorf("receive of a cancelled message: %w", err)
		}
		if _, _, err := take(t.Context(), p.worlds[1], 0, 3); !errors.Is(err, node.ErrGaveUp) {
			return fmt.Errorf("receive on a broken lane: %w", err)
		}
		return nil
	})
	<-got
	for _, w := range p.worlds { // the world goes on
		if err := context.Cause(w.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestLandErrorBreaksTheLane(t *testing.T) {
	p := form(t, 2, Config{})
	const size = 64 << 20
	no := errors.New("no room")
	each(t, 2, func(rank int) error {
		if rank == 0 {
			err := p.worlds[0].Send(t.Context(), 1, 3, tagged(1), size, whole(make([]byte, size)))
			if !errors.Is(err, node.ErrGaveUp) {
				return fmt.Errorf("send to one that gave up: %w", err)
			}
			return nil
		}
		err := p.worlds[1].Recv(t.Context(), 0, 3, func([tagSize]byte, int64) error { return nil }, func([]byte) error { return no })
		if !errors.Is(err, no) {
			return fmt.Errorf("land's error: %w", err)
		}
		return nil
	})
}

func TestSendRefuses(t *testing.T) {
	p := form(t, 2, Config{})
	w := p.worlds[0]
	bad := errors.New("bad part")
	failing := func(yield func([]byte, error) bool) { yield(nil, bad) }
	for want, f := range map[string]func() error{
		"itself":      func() error { return w.Send(t.Context(), 0, 0, tagged(0), 0, whole(nil)) },
		"not in a":    func() error { return w.Send(t.Context(), 2, 0, tagged(0), 0, whole(nil)) },
		"-1":          func() error { return w.Send(t.Context(), -1, 0, tagged(0), 0, whole(nil)) },
		"of -5 bytes": func() error { return w.Send(t.Context(), 1, 0, tagged(0), -5, whole(nil)) },
		"goes on":     func() error { return w.Send(t.Context(), 1, 0, tagged(0), 2, whole([]byte("abc"))) },
		"short of":    func() error { return w.Send(t.Context(), 1, 0, tagged(0), 4, whole([]byte("abc"))) },
		"bad part":    func() error { return w.Send(t.Context(), 1, 0, tagged(0), 4, failing) },
		"of 513":      func() error { return w.Signal(1, 0, make([]byte, 513)) },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// None of them has broken the lane.
	each(t, 2, func(rank int) error {
		if rank == 0 {
			return w.Send(t.Context(), 1, 0, tagged(9), 3, whole([]byte("abc")))
		}
		tag, got, err := take(t.Context(), p.worlds[1], 0, 0)
		if err == nil && (seq(tag) != 9 || string(got) != "abc") {
			err = fmt.Errorf("got %d %q", seq(tag), got)
		}
		return err
	})
}
