package mesh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// ended waits for the end of a world and checks who is named.
func ended(w *World, rank int, cause error) error {
	<-w.Context().Done()
	var e *EndedError
	err := context.Cause(w.Context())
	switch {
	case !errors.As(err, &e):
		return fmt.Errorf("rank %d: ended with %w", w.Rank(), err)
	case e.Rank != rank || e.Peer != w.Peer(rank) || e.Epoch != w.Epoch() || !errors.Is(err, cause):
		return fmt.Errorf("rank %d: want rank %d and %q: %w", w.Rank(), rank, cause, err)
	case !strings.Contains(err.Error(), fmt.Sprintf("rank %d (%s)", rank, w.Peer(rank))):
		return fmt.Errorf("rank %d: the text does not name rank and peer: %w", w.Rank(), err)
	}
	return nil
}

// quit is what a process does whose world has ended.
func (p *party) quit(rank int) error {
	return errors.Join(p.meshes[rank].Close(), p.nodes[rank].Close())
}

func TestNobodyElseIsBlamed(t *testing.T) {
	const n = 4
	boom := errors.New("out of memory")
	for name, begin := range map[string]struct {
		f       func(p *party, rank int) error
		victims []int
		cause   error
	}{
		"killed": {func(p *party, rank int) error { return p.nodes[rank].Close() }, []int{0, 1, 2, 3}, ErrLost},
		"closed": {func(p *party, rank int) error { return p.quit(rank) }, []int{0, 2}, ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			for _, victim := range begin.victims {
				p := form(t, n, Config{})
				each(t, n, func(rank int) error {
					if rank == victim {
						return begin.f(p, rank)
					}
					return errors.Join(ended(p.worlds[rank], victim, begin.cause), p.quit(rank))
				})
			}
		})
	}
	t.Run("own error and exit", func(t *testing.T) {
		p := form(t, n, Config{})
		each(t, n, func(rank int) error {
			if rank == 2 { // which closes no mesh, as a process that exits
				p.worlds[2].End(boom)
				<-p.worlds[2].Done()
				return p.nodes[2].Close()
			}
			<-p.worlds[rank].Context().Done()
			if err := context.Cause(p.worlds[rank].Context()); !strings.HasSuffix(err.Error(), boom.Error()) {
				return fmt.Errorf("rank %d: %w", rank, err)
			}
			return p.quit(rank)
		})
	})
	t.Run("own error", func(t *testing.T) {
		p := form(t, n, Config{})
		p.worlds[2].End(boom)
		p.worlds[2].End(errors.New("later"))
		each(t, n, func(rank int) error {
			err := context.Cause(p.worlds[rank].Context())
			if rank == 2 && !errors.Is(err, boom) {
				return fmt.Errorf("own end: %w", err)
			}
			<-p.worlds[rank].Context().Done()
			err = context.Cause(p.worlds[rank].Context())
			var e *EndedError
			if !errors.As(err, &e) || e.Rank != 2 || !strings.HasSuffix(err.Error(), boom.Error()) {
				return fmt.Errorf("rank %d: %w", rank, err)
			}
			return p.quit(rank)
		})
	})
}

func TestEndFreesEveryCall(t *testing.T) {
	p := form(t, 3, Config{})
	boom := errors.New("boom")
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	wg.Go(func() { // blocked on a full window
		errs <- p.worlds[0].Send(t.Context(), 1, 0, tagged(0), 64<<20, whole(make([]byte, 64<<20)))
	})
	wg.Go(func() { // waiting for the turn behind it
		errs <- p.worlds[0].Send(t.Context(), 1, 0, tagged(0), 64<<20, whole(make([]byte, 64<<20)))
	})
	wg.Go(func() { // waiting for a lane that nobody opens
		_, _, err := take(t.Context(), p.worlds[1], 2, 0)
		errs <- err
	})
	if err := p.worlds[2].Send(t.Context(), 0, 5, tagged(0), 0, whole(nil)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := take(t.Context(), p.worlds[0], 2, 5); err != nil {
		t.Fatal(err)
	}
	wg.Go(func() { // waiting on an open lane
		_, _, err := take(t.Context(), p.worlds[0], 2, 5)
		errs <- err
	})
	time.AfterFunc(20*time.Millisecond, func() { p.worlds[2].End(boom) })
	wg.Wait()
	for range 4 {
		var e *EndedError
		if err := <-errs; !errors.As(err, &e) || e.Rank != 2 {
			t.Errorf("a blocked call returned %v", err)
		}
	}
	for _, w := range p.worlds {
		other := (w.Rank() + 1) % 3
		var e *EndedError
		if err := w.Send(t.Context(), other, 0, tagged(0), 0, whole(nil)); !errors.As(err, &e) {
			t.Errorf("send after the end: %v", err)
		}
		if _, _, err := take(t.Context(), w, other, 0); !errors.As(err, &e) {
			t.Errorf("receive after the end: %v", err)
		}
		if err := w.Signal(other, 0, nil); !errors.As(err, &e) {
			t.Errorf("signal after the end: %v", err)
		}
	}
}

func TestSilence(t *testing.T) {
	// Rank 0's peer beats twice a second, as one with the default does; the other
	// is impatient.
	a, b := startNode(t, loopback), startNode(t, loopback)
	patient := join(t, a, Config{World: 2, Silence: time.Hour})
	hasty := join(t, b, Config{World: 2, Silence: minSilence, Bootstrap: []string{a.Addrs()[0].String()}})
	worlds := worldsOf(t, []*Mesh{patient, hasty})
	rank := worlds[0].Rank()
	each(t, 2, func(i int) error { return ended(worlds[i], rank, ErrSilent) })
}

func TestLeaveDelivers(t *testing.T) {
	const n, messages = 3, 4
	p := form(t, n, Config{})
	data := noise(50_000)
	read := make(chan struct{})
	each(t, n, func(rank int) error {
		w := p.worlds[rank]
		if rank != 0 {
			// The receivers look only after the sender has begun to leave.
			<-w.links[0].left
			for lane := range uint64(2) {
				for i := range messages {
					tag, got, err := take(t.Context(), w, 0, lane)
					if err != nil || seq(tag) != uint64(i) || !bytes.Equal(got, data) {
						return fmt.Errorf("rank %d, lane %d, message %d: %d bytes, %w", rank, lane, i, len(got), err)
					}
				}
			}
			<-read
			return context.Cause(w.Context()) // nobody needed rank 0: the world goes on
		}
		for to := 1; to < n; to++ {
			for lane := range uint64(2) {
				for i := range messages {
					if err := w.Send(t.Context(), to, lane, tagged(uint64(i)), int64(len(data)), whole(data)); err != nil {
						return err
					}
				}
			}
		}
		defer close(read)
		return errors.Join(p.meshes[0].Leave(t.Context()), p.nodes[0].Close())
	})
	// The others can still talk to each other, but not to rank 0.
	each(t, n, func(rank int) error {
		switch rank {
		case 1:
			return p.worlds[1].Send(t.Context(), 2, 0, tagged(0), 0, whole(nil))
		case 2:
			_, _, err := take(t.Context(), p.worlds[2], 1, 0)
			return err
		}
		return nil
	})
	if _, _, err := take(t.Context(), p.worlds[1], 0, 0); !errors.Is(err, ErrLeft) {
		t.Errorf("receive from a rank that has left: %v", err)
	}
	if err := ended(p.worlds[2], 0, ErrLeft); err != nil {
		t.Error(err)
	}
}

func TestLeftIsNeeded(t *testing.T) {
	for name, f := range map[string]func(w *World, from int) error{
		"send":         func(w *World, r int) error { return w.Send(t.Context(), r, 0, tagged(0), 0, whole(nil)) },
		"recv":         func(w *World, r int) error { _, _, err := take(t.Context(), w, r, 0); return err },
		"recv no lane": func(w *World, r int) error { _, _, err := take(t.Context(), w, r, 99); return err },
	} {
		t.Run(name, func(t *testing.T) {
			p := form(t, 3, Config{})
			each(t, 3, func(rank int) error {
				switch rank {
				case 1:
					if err := p.worlds[1].Send(t.Context(), 0, 0, tagged(0), 0, whole(nil)); err != nil {
						return err
					}
					return p.meshes[1].Leave(t.Context())
				case 0:
					_, _, err := take(t.Context(), p.worlds[0], 1, 0)
					return err
				}
				return nil
			})
			<-p.worlds[0].links[1].left
			if err := f(p.worlds[0], 1); !errors.Is(err, ErrLeft) {
				t.Error(err)
			}
			for _, r := range []int{0, 2} {
				if err := ended(p.worlds[r], 1, ErrLeft); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestAllLeave(t *testing.T) {
	const n = 4
	p := form(t, n, Config{})
	each(t, n, func(rank int) error {
		w := p.worlds[rank]
		if err := w.Send(t.Context(), (rank+1)%n, 0, tagged(0), 5, whole([]byte("hello"))); err != nil {
			return err
		}
		if _, _, err := take(t.Context(), w, (rank+n-1)%n, 0); err != nil {
			return err
		}
		return errors.Join(p.meshes[rank].Leave(t.Context()), p.nodes[rank].Close())
	})
	for _, w := range p.worlds {
		if err := context.Cause(w.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("after leaving: %v", err)
		}
		if err := w.Send(t.Context(), (w.Rank()+1)%n, 0, tagged(0), 0, whole(nil)); !errors.Is(err, ErrClosed) {
			t.Errorf("send after leaving: %v", err)
		}
	}
	if _, err := p.meshes[0].World(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("world after leaving: %v", err)
	}
}

func TestLeaveSaysWhoHasNotTakenAll(t *testing.T) {
	p := form(t, 2, Config{})
	if err := p.worlds[0].Send(t.Context(), 1, 0, tagged(0), 3, whole([]byte("abc"))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := p.meshes[0].Leave(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), p.worlds[0].Peer(1).String()) {
		t.Error(err)
	}
}

func TestNextEpoch(t *testing.T) {
	p := form(t, 3, Config{})
	if err := p.quit(1); err != nil {
		t.Fatal(err)
	}
	stay := []*Mesh{p.meshes[0], p.meshes[2]}
	for _, r := range []int{0, 2} {
		if err := ended(p.worlds[r], 1, ErrClosed); err != nil {
			t.Fatal(err)
		}
	}
	// The bootstrap address may be the dead one: the newcomer is told a survivor's.
	n := startNode(t, loopback)
	stay = append(stay, join(t, n, Config{World: 3, Bootstrap: []string{p.nodes[0].Addrs()[0].String()}}))
	worlds := worldsOf(t, stay)
	for _, w := range worlds {
		if w.Epoch() != 2 || w.Size() != 3 {
			t.Errorf("world %d of %d", w.Epoch(), w.Size())
		}
	}
}

func TestSignals(t *testing.T) {
	p := form(t, 2, Config{})
	type got struct {
		from int
		p    string
	}
	seen := make(chan got, 200)
	p.worlds[1].OnSignal(7, func(from int, p []byte) { seen <- got{from, string(p)} })
	for i := range 100 {
		if err := p.worlds[0].Signal(1, 7, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
		if err := p.worlds[0].Signal(1, 8, []byte("nobody listens")); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		if s := <-seen; s.from != 0 || s.p != fmt.Sprint(i) {
			t.Fatalf("signal %d: %+v", i, s)
		}
	}
	p.worlds[1].OnSignal(7, nil)
	if err := p.worlds[0].Signal(1, 7, make([]byte, maxSignal)); err != nil {
		t.Fatal(err)
	}
}

func TestRosterOrder(t *testing.T) {
	ids := []peer.ID{"c", "a", "b"}
	r := newRoster("m", 3, digest{1}, ids)
	for i, id := range []peer.ID{"a", "b", "c"} {
		if r.rank(id) != i || r.Members[i] != id {
			t.Errorf("rank of %s is %d", id, r.rank(id))
		}
	}
	if r.rank("d") != -1 || ids[0] != "c" {
		t.Error("roster has a stranger, or changed its argument")
	}
	for _, other := range []roster{
		newRoster("n", 3, digest{1}, ids), newRoster("m", 4, digest{1}, ids),
		newRoster("m", 3, digest{2}, ids), newRoster("m", 3, digest{1}, ids[1:]),
	} {
		if other.Digest == r.Digest {
			t.Error("two rosters have one digest")
		}
	}
}
