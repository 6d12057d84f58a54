//go:build linux && (amd64 || arm64)

package shm

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// idleStreams is how many readers wait to whom nobody writes.
const idleStreams = 1000

// idle opens streams and returns when a reader sleeps on each.
func idle(t testing.TB) {
	t.Helper()
	c, _ := conns(t)
	all := make([]*Stream, idleStreams)
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
	idle(t)
	for spinning.Load() > 0 { // one that has given up leaves a moment later
		runtime.Gosched()
	}
}

// The processor time that a second of a thousand idle streams takes, in ms-cpu/s.
func BenchmarkIdle(b *testing.B) {
	idle(b)
	var before, after unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &before); err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	for b.Loop() {
		time.Sleep(100 * time.Millisecond)
	}
	if err := unix.Getrusage(unix.RUSAGE_SELF, &after); err != nil {
		b.Fatal(err)
	}
	used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	b.ReportMetric(float64(used)/1e6/time.Since(start).Seconds(), "ms-cpu/s")
}
