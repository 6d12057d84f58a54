//go:build unix && !linux

package main

import "syscall"

// ownGroup makes a child the head of its own process group.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
