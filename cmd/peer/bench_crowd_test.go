package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// crowdEnv has TestBenchCrowd run, which wants a quiet machine.
const crowdEnv = "PEERMESH_CROWD"

// TestBenchCrowd: far more ranks than processors, 64 on two, reduce 1 MiB in under a
// second.
func TestBenchCrowd(t *testing.T) {
	if os.Getenv(crowdEnv) == "" {
		t.Skip(crowdEnv + " is not set")
	}
	s := spawn(t, "bench", "-n", "64", "--op", "all_reduce", "--sizes", "1MiB", "--budget", "2", "--json")
	if status := s.wait(t); status != 0 {
		t.Fatalf("status %d: %s", status, s.errs())
	}
	var m measurement
	if err := json.Unmarshal([]byte(strings.TrimSpace(s.out())), &m); err != nil || !m.OK || m.World != 64 {
		t.Fatalf("%s: %v", s.out(), err)
	}
	if t.Logf("%.0f ms, worst %.0f, of %d runs", m.Median/1e3, m.P99/1e3, m.Iters); m.Median > 1e6 {
		t.Errorf("%.0f ms", m.Median/1e3)
	}
}
