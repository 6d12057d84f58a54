//go:build linux && (amd64 || arm64)

package shm

import (
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"peermesh/node/internal/pipe/pipetest"

	"github.com/libp2p/go-libp2p/core/network"
	"golang.org/x/sys/unix"
)

// What the other side may write anywhere, at any time, ends the connection: an
// index out of bounds, one that goes back, a generation out of turn.
func TestScribbledIndex(t *testing.T) {
	for name, scribble := range map[string]func(b block){
		"head beyond the ring": func(b block) { b.head.Store(3 + RingSize + 1) },
		"head far beyond":      func(b block) { b.head.Store(1 << 63) },
		"head behind":          func(b block) { b.head.Store(4) },
		"another generation":   func(b block) { b.flags.Store(7 << 32) },
	} {
		t.Run(name, func(t *testing.T) {
			c, d := conns(t)
			near, far := stream(t, c, d)
			if _, err := far.Write(make([]byte, 5)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(near, make([]byte, 3)); err != nil {
				t.Fatal(err)
			}
			scribble(far.mine)
			_, err := near.Read(make([]byte, 1))
			if !errors.Is(err, errScribbled) || !c.IsClosed() {
				t.Errorf("%v, closed %v", err, c.IsClosed())
			}
		})
	}
}

// A reader that is ahead of the writer is no reader, nor is one that goes back.
func TestScribbledTail(t *testing.T) {
	for _, tail := range []uint64{6, 4, 1 << 63} {
		c, d := conns(t)
		near, far := stream(t, c, d)
		if _, err := near.Write(make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(far, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		near.out.tail = 5 // as after a write that looked
		far.mine.tail.Store(tail)
		if _, err := near.Write([]byte{1}); !errors.Is(err, errScribbled) || !c.IsClosed() {
			t.Errorf("at %d: %v, closed %v", tail, err, c.IsClosed())
		}
	}
}

// Random memory, while both sides work: nobody hangs, nobody crashes.
func TestScribbledAtRandom(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		c, d := conns(t)
		near, far := stream(t, c, d)
		c.mem.retain() // for the scribbler: the connection may end beside it
		var calls sync.WaitGroup
		for _, s := range []*Stream{near, far} {
			calls.Go(func() { flood(s) })
			calls.Go(func() { _, _ = io.Copy(plain{io.Discard}, s) })
		}
		for range 100 {
			at := int(r.Uint32N(blocksAt+64*blockSize)) &^ 7
			c.mem.word64(at).Store(r.Uint64() >> r.Uint32N(64))
		}
		c.mem.release()
		_ = near.Reset() // what the scribbling has not ended
		_ = c.Close()    // neither fails
		calls.Wait()
	}
}

// A slot that is opened again while it is in use, or in a generation that is not the next,
// is no slot to be opened.
func TestSlotOutOfTurn(t *testing.T) {
	for name, ahead := range map[string]int{"in use": 0, "a generation left out": 1} {
		t.Run(name, func(t *testing.T) {
			c, d := conns(t)
			near, _ := stream(t, c, d)
			slot := near.slot + ahead // of which the last generation is 1, or 0
			c.mem.block(slot, c.side).flags.Store(2<<32 | flagOpen)
			c.tell(slot)
			if _, err := d.AcceptStream(); !errors.Is(err, errScribbled) {
				t.Errorf("%v", err)
			}
		})
	}
}

// FuzzTailer believes an index only within the ring.
func FuzzTailer(f *testing.F) {
	f.Add(uint64(0), uint64(5), uint64(3), 2)
	f.Add(uint64(1<<63), uint64(1), uint64(1<<40), 1)
	f.Fuzz(func(t *testing.T, start, first, then uint64, take int) {
		m := make([]byte, 4<<10)
		r, err := mapTest()
		if err != nil {
			t.Fatal(err)
		}
		defer r.release()
		b := r.block(0, 0)
		in := tailer{data: m, tail: start, head: start, peer: b.head, mine: b.tail}
		for _, index := range []uint64{first, then, ^first} {
			b.head.Store(index)
			before := in.head
			if err := in.refresh(); err != nil {
				if in.head != before {
					t.Error("believed all the same")
				}
				continue
			}
			p := in.front(1 << 20)
			if uint64(len(p)) > uint64(len(m)) || in.head-in.tail > uint64(len(m)) {
				t.Fatalf("%d bytes of a ring of %d", len(p), len(m))
			}
			in.took(min(len(p), max(take, 0)))
		}
		out := header{data: m, head: start, tail: start, peer: b.tail, mine: b.head}
		for _, index := range []uint64{first, then, ^first} {
			b.tail.Store(index)
			if out.refresh() == nil && out.head-out.tail > uint64(len(m)) {
				t.Fatal("room that is not there")
			}
			out.put(make([]byte, 3000))
		}
	})
}

// mapTest is a region of this process alone.
func mapTest() (*region, error) {
	fd, err := newFile()
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return mapRegion(fd)
}

// Memory that could change its size, or fault, is refused.
func TestCheckFile(t *testing.T) {
	make := func(size int64, flags, seal int) int {
		fd, err := unix.MemfdCreate("test", flags|unix.MFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Ftruncate(fd, size); err != nil {
			t.Fatal(err)
		}
		if seal != 0 {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seal); err != nil {
				t.Fatal(err)
			}
		}
		return fd
	}
	good, err := newFile()
	if err != nil {
		t.Fatal(err)
	}
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil {
		t.Fatal(err)
	}
	const sealable = unix.MFD_ALLOW_SEALING
	for name, c := range map[string]struct {
		fd int
		ok bool
	}{
		"as agreed":    {good, true},
		"too short":    {make(4096, sealable, seals), false},
		"can shrink":   {make(regionSize, sealable, unix.F_SEAL_GROW|unix.F_SEAL_SEAL), false},
		"more to seal": {make(regionSize, sealable, unix.F_SEAL_GROW|unix.F_SEAL_SHRINK), false},
		"read only":    {make(regionSize, sealable, seals|unix.F_SEAL_WRITE), false},
		"no seals":     {make(regionSize, 0, 0), false},
		"a pipe":       {pipe[0], false},
	} {
		if err := checkFile(c.fd); (err == nil) != c.ok || err != nil && !errors.Is(err, errMemory) {
			t.Errorf("%s: %v", name, err)
		}
		_ = unix.Close(c.fd)
	}
	_ = unix.Close(pipe[1])
}

// Where no memory may be run the system adds a seal of its own, which does no harm.
func TestCheckFileNoExec(t *testing.T) {
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) {
		t.Skip("Linux has this from 6.3 on")
	}
	if err == nil {
		err = unix.Ftruncate(fd, regionSize)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := checkFile(fd); err != nil {
		t.Error(err)
	}
}

// A side that has no memory left for a stream refuses it with that code.
func TestStreamRefused(t *testing.T) {
	a, b := transports(t)
	limits := new(pipetest.Account)
	b.limits = limits
	c, d := connect(t, a, b)
	limits.Poor.Store(true)
	s, err := c.OpenStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Read(make([]byte, 1))
	if !errors.Is(err, &network.StreamError{ErrorCode: network.StreamResourceLimitExceeded, Remote: true}) {
		t.Errorf("%v", err)
	}
	_ = s.Close() // does not fail
	limits.Poor.Store(false)
	near, far := stream(t, c, d) // in the same slot
	if near.slot != s.(*Stream).slot {
		t.Errorf("slot %d, then %d", s.(*Stream).slot, near.slot)
	}
	_ = far.Close()
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
}
