package main

import (
	"strings"
	"testing"

	"peermesh/gpu"
	"peermesh/ops/schedule"
)

// TestScheduleHosts prints the two levels where ranks share hosts, proves and prices them.
func TestScheduleHosts(t *testing.T) {
	status, stdout, stderr := in("schedule", "all-reduce", "--hosts", "2,2,3", "--bytes", "64MiB")
	for _, part := range []string{
		"two-level(bruck, ", ": 7 ranks, ", "\nproved: every rank ends with the sum",
		" over links of 100µs and 500MB/s between hosts, 40µs and 8GB/s inside\n", "\n*  two-level ",
	} {
		if !strings.Contains(stdout, part) {
			t.Errorf("status %d, stderr %q, no %q in:\n%s", status, stderr, part, stdout)
		}
	}
	for _, kind := range []string{"reduce-scatter", "all-gather", "broadcast", "reduce"} {
		status, stdout, stderr := in("schedule", kind, "--hosts", "3,1,2", "--algorithm", "two-level")
		if status != 0 || !strings.Contains(stdout, "two-level(bruck") || !strings.Contains(stdout, "\nproved: ") {
			t.Errorf("%s: status %d, stderr %q, stdout:\n%s", kind, status, stderr, stdout)
		}
	}
}

// TestScheduleCores prices what ranks cost each other that share processors.
func TestScheduleCores(t *testing.T) {
	status, stdout, stderr := in("schedule", "broadcast", "--hosts", "4", "--cores", "2", "--bytes", "1MiB")
	if status != 0 || !strings.Contains(stdout, "\npriced: 760µs over") || !strings.Contains(stdout, "inside, on 2 processors each\n") {
		t.Errorf("status %d, stderr %q, stdout:\n%s", status, stderr, stdout)
	}
}

// TestScheduleGPUs prints what the GPUs of two hosts do, of which ranks 1 and 2 share one
// and rank 5 has none.
func TestScheduleGPUs(t *testing.T) {
	status, stdout, stderr := in("schedule", "all-reduce", "--gpus", "0,1,1/0,1,-")
	want := `gpu(two-level(direct, 2 parts)): 6 ranks, 4 chunks
  0   2→1 [0:4]+  5→3 [0:4]+
`
	if status != 0 || !strings.HasPrefix(stdout, want) || !strings.Contains(stdout, "\nproved: every rank ends with the sum") {
		t.Errorf("status %d, stderr %q, stdout:\n%s\nwant it to begin with\n%s", status, stderr, stdout, want)
	}
	if strings.Contains(stdout, "\n*  gpu ") || !strings.Contains(stdout, "\n   gpu ") {
		t.Errorf("a group would take it by itself, or it has no price:\n%s", stdout)
	}
}

// TestGPUSchedule proves it for hosts of all kinds, among them some without a GPU.
func TestGPUSchedule(t *testing.T) {
	for _, list := range []string{"0", "-", "0,1", "0,0", "0/0", "-/-", "-,-,0", "0,1,2/0", "0,1,1/0,1,-/-,-", "0,0,0,1/-,2/1,0", "0/0,1/0,1,2"} {
		var ranks int
		f := hostFlags{GPUs: list, NearRate: 1}
		if err := f.seat(&ranks, "all-reduce"); err != nil {
			t.Fatal(err)
		}
		s := gpuSchedule(gpu.Arrange(f.seats))
		if err := schedule.Check(s, schedule.AllReduceContract); err != nil || s.Ranks != ranks {
			t.Errorf("%s: %d of %d ranks, %v:\n%v", list, s.Ranks, ranks, err, s)
		}
		if s.Algorithm() != gpuAlgorithm {
			t.Errorf("%s is known as %s", s.Name, s.Algorithm())
		}
	}
}

func TestScheduleHostsUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"--cores is -1":       {"all-reduce", "--hosts", "4", "--cores=-1"},
		"give --hosts":        {"all-reduce", "--cores", "2"},
		"one or the other":    {"all-reduce", "--hosts", "2", "--gpus", "0"},
		"--gpus is for":       {"broadcast", "--gpus", "0,1"},
		"\"x\"":               {"all-reduce", "--hosts", "2,x"},
		"\"0\"":               {"all-reduce", "--hosts", "0,1"},
		"at most 1024 in all": {"all-reduce", "--hosts", "1000,25"},
		"\"a\"":               {"all-reduce", "--gpus", "0/a"},
		"has 1025 ranks":      {"all-reduce", "--gpus", strings.Repeat("0,", 1024) + "0"},
		"at least one byte":   {"all-reduce", "--hosts", "2", "--near-rate", "0"},
		"want 0 to 2":         {"reduce", "--hosts", "2,1", "--root", "3"},
	} {
		status, _, stderr := in(append([]string{"schedule"}, args...)...)
		if status != statusUsage || !strings.Contains(stderr, want) {
			t.Errorf("%q: status %d, stderr %q, want %q", args, status, stderr, want)
		}
	}
}
