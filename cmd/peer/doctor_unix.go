//go:build unix

package main

import "syscall"

// openFiles is how many files this process may have open, and to how many it may raise
// that. Go raises it by itself as it starts, where it may.
func openFiles() (soft, hard uint64) {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0, 0
	}
	return uint64(l.Cur), uint64(l.Max)
}
