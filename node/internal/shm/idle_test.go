//go:build linux && (amd64 || arm64)

package shm

import (
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// idleStreams is how many readers wait to whom nobody writes.
const idleStreams = 1000

// idle opens n streams and returns when a reader sleeps on each.
func idle(t testing.TB, n int) {
	t.Helper()
	c, _ := conns(t)
	all := make([]*Stream, n)
	var readers sync.WaitGroup
	for i := range all {
		s, err := c.OpenStream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all[i] = s.(*Stream)
		readers.Go(func() {
			if _, err := s.Read(make([]byte, 1)); err == nil {
				t.Error("read something that nobody wrote")
			}
		})
	}
	t.Cleanup(func() {
		for _, s := range all {
			_ = s.Reset() // ends the read; does not fail
		}
		readers.Wait()
	})
	for _, s := range all {
		for s.mine.reader.Load() == 0 {
			runtime.Gosched()
		}
	}
}

// Readers to whom nobody writes come to sleep, and then nothing looks any more.
func TestIdleStreamsSleep(t *testing.T) {
	idle(t, idleStreams)
	for spinning.Load() > 0 { // one that has given up leaves a moment later
		runtime.Gosched()
	}
}

// The processor time that a second of so many idle streams takes, in ms-cpu/s: a connection
// alone, and with a thousand. Of the process as a whole, as /proc/self/stat has it, but finer.
func BenchmarkIdle(b *testing.B) {
	for _, n := range []int{0, idleStreams} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			idle(b, n)
			runtime.GC() // of what came before
			before, start := used(b), time.Now()
			for b.Loop() {
				time.Sleep(100 * time.Millisecond)
			}
			took := used(b) - before
			b.ReportMetric(float64(took.Microseconds())/1e3/time.Since(start).Seconds(), "ms-cpu/s")
		})
	}
}

// used is the processor time that the process has taken.
func used(t testing.TB) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
