//go:build unix && !linux

package rendezvous

import (
	"sync"

	"golang.org/x/sys/unix"
)

// setLock is POSIX's lock, which a process does not keep from itself.
const setLock = unix.F_SETLK

// held are the paths that this process has locked.
var held sync.Map

// within keeps nodes of one process apart; nil while another has the path.
func within(path string) func() {
	if _, taken := held.LoadOrStore(path, true); taken {
		return nil
	}
	return func() { held.Delete(path) }
}
