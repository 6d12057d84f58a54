//go:build linux && (amd64 || arm64)

package shm

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"peermesh/node/internal/pipe"

	"golang.org/x/sys/unix"
)

// listens reports whether hear asks a connection.
func listens(c *Conn) bool {
	attended.RLock()
	defer attended.RUnlock()
	return slices.Contains(attended.all, c)
}

// ringSilently is tell, but for the byte over the socket: what serve does not hear.
func (c *Conn) ringSilently(slot int) {
	c.theirs.bits[slot/64].Or(1 << (slot % 64))
	c.theirs.rung.Store(1)
}

// Who looks hears the bells for those that sleep, too.
func TestHear(t *testing.T) {
	c, d := conns(t)
	near, far := stream(t, c, d)
	read := make(chan error, 1)
	go func() {
		_, err := near.Read(make([]byte, 1))
		read <- err
	}()
	for near.mine.reader.Load() == 0 || !listens(c) {
		runtime.Gosched()
	}
	near.mine.reader.Store(0) // so that nobody rings aloud
	if _, err := far.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	d.ringSilently(far.slot)
	hear()
	if err := <-read; err != nil || c.ours.rung.Load() != 0 {
		t.Errorf("read: %v; rung %d", err, c.ours.rung.Load())
	}
}

// What it hears may be nonsense, which ends that connection and none beside. One that has
// ended is asked no more.
func TestHearNonsense(t *testing.T) {
	c, d := conns(t)
	e, f := conns(t)
	near, _ := stream(t, c, d)
	for !listens(c) || !listens(e) || !listens(f) {
		runtime.Gosched()
	}
	near.mine.flags.Store(uint64(near.gen+1) << 32) // opened again, in use
	c.ringSilently(near.slot)
	hear()
	<-d.done
	<-d.stopped
	<-c.stopped // its other side is gone
	if listens(c) || listens(d) || !listens(e) || e.IsClosed() {
		t.Errorf("listens to %v, %v; beside %v", listens(c), listens(d), listens(e))
	}
	hear() // asks none that has ended
}

// A bell that the system has lost ends the connection on both sides; one that a full
// socket has no room for does not.
func TestLostBell(t *testing.T) {
	c, d := conns(t)
	ring := func(err error) {
		t.Helper()
		if err := c.raw.Write(func(fd uintptr) bool { rang(int(fd), err); return true }); err != nil {
			t.Fatal(err)
		}
	}
	ring(nil)
	ring(unix.EAGAIN)
	stream(t, d, c) // bells are heard as before
	ring(unix.ENOBUFS)
	for who, c := range map[string]*Conn{"this side": c, "the other": d} {
		if _, err := c.AcceptStream(); !errors.Is(err, pipe.ErrGone) {
			t.Errorf("%s: %v", who, err)
		}
	}
}
