//go:build linux && (amd64 || arm64)

package shm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"peermesh/node/internal/pipe/pipetest"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/multiformats/go-multiaddr"
	"golang.org/x/sys/unix"
)

func key(t testing.TB) crypto.PrivKey {
	t.Helper()
	k, _, err := crypto.GenerateEd25519Key(nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// wire is the other side of a handshake that has said everything already.
type wire struct {
	io.Reader
	io.Writer
}

// FuzzHandshake: whatever comes, an answer or an error.
func FuzzHandshake(f *testing.F) {
	me := identity{key: key(f)}
	hello, err := newHello(key(f).GetPublic())
	if err != nil {
		f.Fatal(err)
	}
	var good bytes.Buffer
	_ = writeMessage(&good, hello)            // into memory:
	_ = writeMessage(&good, make([]byte, 96)) // does not fail
	f.Add(good.Bytes(), dialler)
	f.Add(good.Bytes()[:40], listener)
	f.Add([]byte{0xff, 0xff}, listener)
	f.Fuzz(func(t *testing.T, said []byte, side int) {
		if _, _, err := me.introduce(wire{bytes.NewReader(said), io.Discard}, side&1, "x"); err == nil {
			t.Error("convinced without a signature of ours")
		}
	})
}

// pair runs both sides of the introduction.
func pair(a, b identity, nameA, nameB string) (errA, errB error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err, err
	}
	p, q := os.NewFile(uintptr(fds[0]), "a"), os.NewFile(uintptr(fds[1]), "b")
	done := make(chan error)
	go func() {
		_, _, err := b.introduce(q, listener, nameB)
		_ = q.Close() // frees the other side
		done <- err
	}()
	_, _, errA = a.introduce(p, dialler, nameA)
	_ = p.Close() // likewise
	return errA, <-done
}

func TestIntroduce(t *testing.T) {
	a, b := identity{key: key(t)}, identity{key: key(t)}
	secret := identity{key: key(t), secret: []byte("a pre-shared key of thirty-two b")}
	if errA, errB := pair(a, b, "x", "x"); errA != nil || errB != nil {
		t.Errorf("%v, %v", errA, errB)
	}
	if _, err := pair(a, b, "x", "y"); !errors.Is(err, errHandshake) {
		t.Errorf("a proof meant for another socket: %v", err)
	}
	if _, err := pair(a, secret, "x", "x"); err == nil || !strings.Contains(err.Error(), "private network") {
		t.Errorf("another private network: %v", err)
	}
}

// Every bit of what is proved counts.
func TestVerify(t *testing.T) {
	a := identity{key: key(t)}
	s := statement(dialler, "x", [2][]byte{[]byte("one"), []byte("other")})
	proof, err := a.prove(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.verify(a.key.GetPublic(), s, proof); err != nil {
		t.Fatal(err)
	}
	for i := range s {
		forged := bytes.Clone(s)
		forged[i] ^= 1
		if a.verify(a.key.GetPublic(), forged, proof) == nil {
			t.Errorf("byte %d of the statement does not count", i)
		}
	}
	for _, short := range [][]byte{nil, proof[:31], proof[:40]} {
		if a.verify(a.key.GetPublic(), s, short) == nil {
			t.Errorf("a proof of %d bytes", len(short))
		}
	}
}

// A stranger who says nothing, or nonsense, harms nobody else.
func TestStrangers(t *testing.T) {
	a, b := transports(t)
	l, err := b.Listen(b.place.address(anyName))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, said := range []string{"", "\x05\x00hello", "\xff\xff", strings.Repeat("x", 5000)} {
		c, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, said) // may be cut short by the other side
	}
	c, err := a.Dial(t.Context(), l.Multiaddr(), b.id)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close() // does not fail
	if _, err := a.Dial(t.Context(), l.Multiaddr(), a.id); err == nil || !strings.Contains(err.Error(), "peer id mismatch") {
		t.Errorf("another peer: %v", err)
	}
}

// A listener that never answers costs the dialler its patience, and no more.
func TestDialGivesUp(t *testing.T) {
	a, _ := transports(t)
	name := newName()
	l, err := net.Listen("unix", a.place.path(name))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := a.Dial(ctx, a.place.address(name), a.id); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// An address is dialled only where it leads to the same socket.
func TestCanDial(t *testing.T) {
	a, _ := transports(t)
	other := place{dir: strings.Replace(a.place.dir, a.place.id, "0123456789abcdef", 1)}
	for text, want := range map[string]bool{
		a.place.address("abc").String():                   true,
		"/unix/elsewhere/" + a.place.id + "/abc":          true, // the same directory, by another way
		other.address("abc").String():                     false,
		a.place.address(nobody).String():                  false,
		a.place.address(anyName).String():                 false,
		"/unix/var/run/docker.sock":                       false,
		"/unix/" + a.place.id + "/..":                     false,
		"/unix" + a.place.dir + "/x.sock":                 false,
		"/ip4/127.0.0.1/tcp/1":                            false,
		a.place.address(strings.Repeat("a", 33)).String(): false,
	} {
		m, err := multiaddr.NewMultiaddr(text)
		if err != nil {
			continue // no address at all
		}
		if a.CanDial(m) != want {
			t.Errorf("%s: %v", text, !want)
		}
	}
}

// The place's ID is of the directory, not of its name.
func TestPlace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	p, err := openPlaceAt(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+"b"); err != nil {
		t.Fatal(err)
	}
	moved, err := openPlaceAt(dir + "b")
	if err != nil || moved.id != p.id {
		t.Errorf("%s, %s, %v", p.id, moved.id, err)
	}
	fresh, err := openPlaceAt(dir)
	if err != nil || fresh.id == p.id {
		t.Errorf("%s, %s, %v", p.id, fresh.id, err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := openPlaceAt(dir); err == nil {
		t.Error("a directory that others can enter")
	}
}

// A start removes the sockets of the dead, and no others.
func TestSweep(t *testing.T) {
	p, err := openPlaceAt(filepath.Join(t.TempDir(), "a"))
	if err != nil {
		t.Fatal(err)
	}
	live, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.path("live"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	for _, name := range []string{"dead", unbornPrefix + "new", unbornPrefix + "old"} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.path(name), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		_ = l.Close() // does not fail
	}
	long := time.Now().Add(-2 * unborn)
	if err := os.Chtimes(p.path(unbornPrefix+"old"), long, long); err != nil {
		t.Fatal(err)
	}
	if err := p.sweep(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(p.dir)
	if err != nil || len(left) != 2 || left[0].Name() != unbornPrefix+"new" || left[1].Name() != "live" {
		t.Errorf("%v, %v", left, err)
	}
}

// A listener's name is its own, and goes with it.
func TestListen(t *testing.T) {
	a, b := transports(t)
	at := a.place.address(newName())
	l, err := a.Listen(at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Listen(at); err == nil {
		t.Error("two listeners of one name")
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(l.Addr().String()); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	if _, err := l.Accept(); err == nil {
		t.Error("accepted after Close")
	}
	for _, bad := range []string{"/unix/tmp/x", "/ip4/127.0.0.1/tcp/0"} {
		if _, err := a.Listen(multiaddr.StringCast(bad)); err == nil {
			t.Errorf("listens on %s", bad)
		}
	}
	full := new(pipetest.Account)
	full.Full.Store(true)
	a.limits = full
	if _, err := a.Dial(t.Context(), at, b.id); !errors.Is(err, network.ErrResourceLimitExceeded) {
		t.Errorf("%v", err)
	}
}
