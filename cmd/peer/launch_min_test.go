package main

import (
	"strings"
	"testing"
)

// TestLaunchMin launches ranks that go on without each other: they form a world though
// their keys, and the folder of those, go as soon as they have been read.
func TestLaunchMin(t *testing.T) {
	s := spawn(t, "launch", "-n", "2", "--min", "1", "--data", writeDigits(t), "--steps", "2")
	if status := s.wait(t); status != 0 || !strings.Contains(s.out(), "test accuracy") {
		t.Errorf("status %d: %s", status, s.errs())
	}
}
