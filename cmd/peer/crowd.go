package main

import (
	"os"
	"runtime"
)

// crowd has Go run no more at a time than this rank computes with, where the ranks of one
// machine, and no others, keep all of its processors busy. What travels meanwhile then only
// takes turns with the arithmetic, here and in the ranks beside: threads that wake for it
// push others off their processors, and the Go runtime's monitor wakes every 20 µs as long
// as one comes and goes. Two ranks on two processors train a sixth faster so, eight by a
// tenth. Who sets GOMAXPROCS has the last word.
func (s *session) crowd() {
	confine(s.local, s.cmd.World, s.cmd.plan(s.cmd.World, s.local).threads)
}

// confine is crowd for a rank of so many threads. One that only sends and receives has one.
func confine(local, world, threads int) {
	if _, set := os.LookupEnv("GOMAXPROCS"); !set && crowded(local, world, threads, runtime.NumCPU()) {
		runtime.GOMAXPROCS(threads)
	}
}

// crowded reports whether so many ranks of a world, of so many threads, are all of it and as
// many as their machine's processors or more. A rank alone has nobody to be in the way of.
func crowded(local, world, threads, processors int) bool {
	return local > 1 && local == world && local*threads >= processors
}
