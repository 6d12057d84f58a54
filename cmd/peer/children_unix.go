//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// launchable says why this system cannot carry children; nil where it can.
func launchable() error { return nil }

// signalGroup sends s to a child and all that it has started.
func signalGroup(cmd *exec.Cmd, s syscall.Signal) {
	// The group can have gone since; there is nothing to do about it then.
	_ = syscall.Kill(-cmd.Process.Pid, s)
}

// adopt keeps an inherited pipe from this process's own children, and reports
// whether the descriptor is one.
func adopt(fd uintptr) bool {
	var stat syscall.Stat_t
	if err := syscall.Fstat(int(fd), &stat); err != nil || stat.Mode&syscall.S_IFMT != syscall.S_IFIFO {
		return false
	}
	syscall.CloseOnExec(int(fd))
	return true
}
