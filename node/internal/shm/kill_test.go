//go:build linux && (amd64 || arm64)

package shm

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"peermesh/node/internal/pipe"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/transport"
)

// killsEnv says how many processes TestKill kills; make kills sets it to 1000.
const killsEnv = "PEERMESH_KILLS"

// A process that has dialled us, or that we have, is killed at any moment, most likely in
// the middle of a write. What it shared with us ends with an error, and nothing of it stays behind: no memory, no
// descriptor, no socket, no goroutine (goleak looks), no thread.
func TestKill(t *testing.T) {
	kills := 4
	if text := os.Getenv(killsEnv); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 { // what the first leave behind is there for good: pollers, threads
		killOne(t, i)
	}
	runtime.GC()
	before := inventory(t)
	for i := range kills {
		killOne(t, i)
	}
	after := inventory(t)
	if after.files > before.files || after.maps > before.maps || after.threads > before.threads+8 {
		t.Errorf("%+v, and after %d kills %+v", before, kills, after)
	}
	a, _ := transports(t)
	if err := a.place.sweep(); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(a.place.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if p := a.place.path(n.Name()); deserted(p) && !strings.HasPrefix(n.Name(), unbornPrefix) {
			t.Errorf("%s is left", p)
		}
	}
}

// victim is a child and the connection with it, in which it does something with a stream:
// one that we have dialled, and in turn one that has dialled us.
func victim(t *testing.T, i int) (*child, transport.CapableConn, network.MuxedStream) {
	t.Helper()
	kind := []string{"sink", "source", "both"}[i/2%3]
	if i%2 == 0 {
		c := startChild(t, kind)
		conn, s := c.dial(t)
		return c, conn, s
	}
	_, b := transports(t)
	l, err := b.Listen(b.place.address(anyName))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	c := startChild(t, fmt.Sprint(kind, " ", l.Multiaddr(), " ", b.id))
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s, err := conn.AcceptStream()
	if err != nil {
		t.Fatal(err)
	}
	return c, conn, s
}

func killOne(t *testing.T, i int) {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	c, conn, s := victim(t, i)
	ends := make(chan error, 2)
	go func() {
		_, err := io.Copy(plain{io.Discard}, s)
		ends <- err
	}()
	go func() {
		p := make([]byte, 300<<10)
		var err error
		for err == nil {
			_, err = s.Write(p)
		}
		ends <- err
	}()
	time.Sleep(time.Duration(r.Uint32N(3000)) * time.Microsecond) // the moment is the point
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-ends; !errors.Is(err, pipe.ErrGone) {
			t.Errorf("%v", err)
		}
	}
	if _, err := conn.AcceptStream(); !errors.Is(err, pipe.ErrGone) {
		t.Errorf("%v", err)
	}
	_ = conn.Close() // does not fail
	_ = c.cmd.Wait() // killed
	_ = c.in.Close() // ours alone now
}

// stock is what a process holds.
type stock struct{ files, maps, threads int }

func inventory(t *testing.T) stock {
	t.Helper()
	count := func(dir string) int {
		names, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return stock{files: count("/proc/self/fd"), threads: count("/proc/self/task"),
		maps: strings.Count(string(maps), "memfd:peermesh")}
}

// Many streams on which nothing happens cost no processor time and no threads.
func TestIdle(t *testing.T) {
	const idle = 1000
	c, d := conns(t)
	reads := make(chan error, idle)
	var far []*Stream
	for range idle {
		n, f := stream(t, c, d)
		far = append(far, f)
		go func() {
			_, err := n.Read(make([]byte, 1))
			reads <- err
		}()
	}
	for sleeping := 0; sleeping < idle; runtime.Gosched() {
		sleeping = 0
		for _, f := range far {
			sleeping += int(f.theirs.reader.Load())
		}
	}
	if n := inventory(t).threads; n > 64 {
		t.Errorf("%d threads", n)
	}
	if n := spinning.Load(); n != 0 {
		t.Errorf("%d of them spin", n)
	}
	for _, f := range far {
		if _, err := f.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	for range idle {
		if err := <-reads; err != nil {
			t.Fatal(err)
		}
	}
}
