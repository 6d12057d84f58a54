package rendezvous

import "golang.org/x/sys/unix"

// setLock locks for an open file rather than for a process, so that two nodes of one
// process exclude each other, too.
const setLock = unix.F_OFD_SETLK

// within would keep nodes of one process apart.
func within(string) func() { return func() {} }
