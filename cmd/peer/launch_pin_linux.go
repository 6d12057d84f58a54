package main

import "golang.org/x/sys/unix"

// maxCores is how many the system's call can tell of.
const maxCores = 1024

// ownCores are those that this process may run on.
func ownCores() (cores []int) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	for i := range maxCores {
		if set.IsSet(i) {
			cores = append(cores, i)
		}
	}
	return cores
}

// pinThread moves the calling thread, which must be locked to its goroutine, to some
// cores, until undo. A process that it starts meanwhile stays there, with all its
// threads from the first on; Go's runtime counts them as its processors.
func pinThread(cores []int) (undo func()) {
	var before, set unix.CPUSet
	for _, core := range cores {
		set.Set(core)
	}
	err := unix.SchedGetaffinity(0, &before)
	if err == nil {
		err = unix.SchedSetaffinity(0, &set)
	}
	if err != nil {
		logger.Warnf("ranks are not pinned to cores: %v", err)
		return func() {}
	}
	return func() {
		if err := unix.SchedSetaffinity(0, &before); err != nil {
			logger.Warnf("the launcher stays on the cores of a rank: %v", err)
		}
	}
}
