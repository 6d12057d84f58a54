//go:build unix

package scale

import (
	"runtime"
	"syscall"
	"time"
)

// cpuTime is what the process has used of processors so far.
func cpuTime() time.Duration {
	u := usage()
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peak is the most memory that the process has held so far, in bytes.
func peak() int64 {
	rss := int64(usage().Maxrss)
	if runtime.GOOS == "darwin" {
		return rss
	}
	return rss << 10 // elsewhere it comes in KiB
}

func usage() (u syscall.Rusage) {
	// It fails only for a pointer or a subject that cannot be.
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u
}
