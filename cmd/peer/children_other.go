//go:build !unix

package main

import (
	"errors"
	"os/exec"
	"syscall"
)

// launchable says why this system cannot carry children: Go passes no files on
// to a process here, and the ranks learn of each other through pipes.
func launchable() error {
	return errors.New("this system cannot start ranks for you: start each with peer --world N, all but the first with --bootstrap ADDR")
}

// ownGroup leaves a child as it is.
func ownGroup() *syscall.SysProcAttr { return nil }

// signalGroup ends a child, which is all that can be done to one here.
func signalGroup(cmd *exec.Cmd, _ syscall.Signal) { _ = cmd.Process.Kill() }

// adopt finds no pipe, as nobody can have passed one on.
func adopt(uintptr) bool { return false }
