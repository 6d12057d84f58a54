package main

import (
	"strings"
	"syscall"
	"testing"
)

// TestFailureDisk has no room for checkpoints: the log says so, with what to do, and the
// run goes on. It takes a file system of its own, and so root.
func TestFailureDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	s := spawn(t, "--data", writeDigits(t), "--steps", "2", "--threads", "1", "--checkpoint", dir, "--every", "1")
	if status := s.wait(t); status != 0 || !strings.Contains(s.out(), "test accuracy") {
		t.Errorf("status %d: a full disk has ended the run: %s", status, s.errs())
	}
	for _, want := range []string{"and the run goes on", "no space left on device", "make room there"} {
		if !strings.Contains(s.errs(), want) {
			t.Errorf("the log lacks %q: %s", want, s.errs())
		}
	}
}
