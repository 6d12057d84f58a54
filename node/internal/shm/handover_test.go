//go:build linux && (amd64 || arm64)

package shm

import (
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"peermesh/node/internal/pipe/pipetest"

	"golang.org/x/sys/unix"
)

// sockets are the two ends of a connected pair.
func sockets(t *testing.T) (near, far *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		c, err := net.FileConn(f)
		_ = f.Close() // c has a copy
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		ends[i] = c.(*net.UnixConn)
	}
	return ends[0], ends[1]
}

// Whatever comes in the place of the memory is an error that says so, and leaves no
// descriptor and no mapping behind.
func TestTakeMemory(t *testing.T) {
	good, err := newFile()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(good)
	loose, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(loose)
	for name, c := range map[string]struct {
		say  string
		fds  []int
		want string // of the error; empty: none
	}{
		"as agreed":       {"r", []int{good}, ""},
		"nothing":         {"", nil, "EOF"},
		"no descriptor":   {"r", nil, "0 descriptors"},
		"two descriptors": {"r", []int{good, good}, "descriptors"},
		"another byte":    {"x", []int{good}, "1 descriptors"},
		"other memory":    {"r", []int{loose}, "not as agreed"},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := sockets(t)
			before := inventory(t)
			if c.say == "" {
				_ = far.CloseWrite() // of a socket that is open
			} else if _, _, err := far.WriteMsgUnix([]byte(c.say), unix.UnixRights(c.fds...), nil); err != nil {
				t.Fatal(err)
			}
			mem, err := takeMemory(near)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(far, make([]byte, 1)); err != nil {
					t.Error(err)
				}
				mem.release()
			} else if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "%!") {
				t.Errorf("%v, want %q", err, c.want)
			}
			if after := inventory(t); after.files != before.files || after.maps != before.maps {
				t.Errorf("%+v, and then %+v", before, after)
			}
		})
	}
}

// A side that does not take the memory that it is given gets no connection.
func TestGiveMemory(t *testing.T) {
	for name, answer := range map[string]string{"nothing": "", "another byte": "x"} {
		near, far := sockets(t)
		before := inventory(t)
		if answer == "" {
			_ = far.CloseWrite() // of a socket that is open
		} else if _, err := io.WriteString(far, answer); err != nil {
			t.Fatal(err)
		}
		if _, err := giveMemory(near); err == nil {
			t.Errorf("%s: given all the same", name)
		}
		if after := inventory(t); after.files > before.files+1 || after.maps != before.maps { // one is on its way
			t.Errorf("%s: %+v, and then %+v", name, before, after)
		}
	}
}

// A gater may refuse before it is known who comes, and after. Nothing is left of it.
func TestGated(t *testing.T) {
	for _, g := range []pipetest.Gate{{}, {Accept: true}} {
		a, b := transports(t)
		near, far := new(pipetest.Account), new(pipetest.Account)
		a.limits, b.limits, b.gate = near, far, g
		l, err := b.Listen(b.place.address(anyName))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Dial(t.Context(), l.Multiaddr(), b.id); err == nil {
			t.Errorf("%+v: let in", g)
		}
		if err := l.Close(); err != nil { // waits for the handshake
			t.Error(err)
		}
		if near.Open()+far.Open()+near.Held()+far.Held() != 0 {
			t.Errorf("%+v: %d and %d connections", g, near.Open(), far.Open())
		}
	}
}

// Connections that nobody has accepted end with their listener, and what they hold.
func TestListenerTakesItsConnections(t *testing.T) {
	a, b := transports(t)
	far := new(pipetest.Account)
	b.limits = far
	l, err := b.Listen(b.place.address(anyName))
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.Dial(t.Context(), l.Multiaddr(), b.id)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AcceptStream(); err == nil || far.Open() != 0 {
		t.Errorf("%v; %d connections", err, far.Open())
	}
}
