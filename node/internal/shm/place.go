//go:build linux && (amd64 || arm64)

package shm

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/multiformats/go-multiaddr"
	"golang.org/x/sys/unix"
)

const (
	// anyName asks a listener for a name of its own; nobody is the name of one who
	// does not listen.
	anyName, nobody = "any", "nobody"
	// maxName bounds a socket's name in bytes, maxPath its path: the kernel's limit.
	maxName, maxPath = 32, 107
	// maxSockets bounds the sockets of other peers that a start looks at.
	maxSockets = 4096
	// unborn is how old a socket must be that nobody listens on yet, to be left
	// over rather than about to be listened on.
	unborn = time.Minute
	// unbornPrefix marks one.
	unbornPrefix = "."
)

// A place is the directory where this user's peers find each other.
//
// Its ID is a hash of what kernel runs (its boot ID) and which directory that is
// (its device and inode). Whoever computes the same ID sees the same sockets:
// another machine has another boot ID, and a container that has a directory of
// its own has another inode, while one that shares it, wherever it is mounted,
// has the same.
type place struct {
	dir string // of the sockets
	id  string
}

// openPlace makes the directory if need be. It belongs to the user alone.
func openPlace() (place, error) {
	uid := strconv.Itoa(os.Geteuid())
	var errs error
	for _, dir := range []string{"/run/user/" + uid + "/peermesh", "/tmp/peermesh-" + uid} {
		p, err := openPlaceAt(dir)
		if err == nil {
			return p, nil
		}
		errs = errors.Join(errs, err)
	}
	return place{}, fmt.Errorf("shm: no directory for sockets: %w", errs)
}

func openPlaceAt(dir string) (place, error) {
	st, err := private(dir)
	if err != nil {
		return place{}, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return place{}, err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "peermesh shm place\n%s\n%d %d", strings.TrimSpace(string(boot)), st.Dev, st.Ino))
	p := place{id: hex.EncodeToString(sum[:8])}
	p.dir = filepath.Join(dir, p.id)
	if len(p.dir)+1+maxName > maxPath {
		return place{}, fmt.Errorf("%s is too long for a socket's path", p.dir)
	}
	_, err = private(p.dir)
	return p, err
}

// private makes a directory that only this user can enter, or checks that it is.
func private(dir string) (st unix.Stat_t, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return st, err
	}
	if err := unix.Lstat(dir, &st); err != nil {
		return st, &fs.PathError{Op: "lstat", Path: dir, Err: err}
	}
	if st.Mode != unix.S_IFDIR|0o700 || int(st.Uid) != os.Geteuid() {
		return st, fmt.Errorf("%s: mode %o of user %d: want a directory that user %d alone can enter", dir, st.Mode, st.Uid, os.Geteuid())
	}
	return st, nil
}

// address is the multiaddr of a socket here.
func (p place) address(name string) multiaddr.Multiaddr {
	return multiaddr.StringCast("/unix" + p.path(name))
}

func (p place) path(name string) string { return filepath.Join(p.dir, name) }

// name is what an address calls a socket of this place; false if the address is
// any other's. Where the address says that the place is does not matter, and no
// path that a peer has chosen is ever opened.
func (p place) name(a multiaddr.Multiaddr) (string, bool) {
	if len(a) != 1 || a[0].Protocol().Code != multiaddr.P_UNIX {
		return "", false
	}
	dir, name := filepath.Split(a[0].Value())
	return name, filepath.Base(dir) == p.id && goodName(name)
}

// goodName tells a plain name from what could lead elsewhere.
func goodName(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// newName is a name that nobody else has.
func newName() string {
	var b [10]byte
	_, _ = rand.Read(b[:]) // never fails
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}

// sweep removes the sockets of processes that have died.
func (p place) sweep() error {
	d, err := os.Open(p.dir)
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Readdirnames(maxSockets)
	if err != nil && len(names) == 0 {
		return nil // io.EOF: there are none
	}
	for _, name := range names {
		path := p.path(name)
		if strings.HasPrefix(name, unbornPrefix) {
			if st, err := os.Lstat(path); err != nil || time.Since(st.ModTime()) < unborn {
				continue
			}
		}
		if deserted(path) {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// deserted reports whether nobody has the socket open. A socket of another type
// cannot connect to it, so a listener does not notice the question: the kernel
// says that the types differ, or that there is nobody.
func deserted(path string) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return errors.Is(unix.Connect(fd, &unix.SockaddrUnix{Name: path}), unix.ECONNREFUSED)
}
