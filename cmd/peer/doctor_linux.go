package main

import "syscall"

// freeShm is what is free in /dev/shm, in bytes; −1 without it.
func freeShm() int64 {
	var s syscall.Statfs_t
	if syscall.Statfs("/dev/shm", &s) != nil {
		return -1
	}
	return int64(s.Bavail) * s.Bsize
}
