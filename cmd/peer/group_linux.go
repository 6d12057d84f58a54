package main

import "syscall"

// ownGroup makes a child the head of its own process group. Linux also kills it
// when the thread that started it ends: with the tether there are two ropes,
// and this one holds while a child is stopped or has not come to its own code.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
