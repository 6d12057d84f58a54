package main

import (
	"strings"
	"testing"

	"peermesh/ops/schedule"
)

func TestScheduleCommand(t *testing.T) {
	status, stdout, stderr := in("schedule", "all-reduce", "--ranks", "3", "--bytes", "64MiB")
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, stderr %q", status, stderr)
	}
	for _, want := range []string{
		"all-reduce of 67108864 bytes, links of 100µs and 500000000 bytes/s:\n",
		"  ring ", "  doubling ", "  halving ", "  binomial ",
		"\nall-reduce(ring): 3 ranks, 3 chunks\n  0   0→1 [2]+  1→2 [0]+  2→0 [1]+\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the output lacks %q:\n%s", want, stdout)
		}
	}
	if strings.Index(stdout, "  ring ") > strings.Index(stdout, "  binomial ") {
		t.Errorf("the ring is not priced below the tree for a long vector:\n%s", stdout)
	}
}

// TestScheduleAlgorithm prints one that is not the cheapest.
func TestScheduleAlgorithm(t *testing.T) {
	status, stdout, stderr := in("schedule", "all-reduce", "-n", "4", "--bytes", "8", "--algorithm", "ring")
	if status != 0 || !strings.Contains(stdout, "\nall-reduce(ring): 4 ranks") {
		t.Errorf("status %d, stdout:\n%s\nstderr %q", status, stdout, stderr)
	}
}

// TestGenerate proves what is printed.
func TestGenerate(t *testing.T) {
	contracts := map[string]schedule.Contract{
		"all-reduce": schedule.AllReduceContract, "reduce-scatter": schedule.ReduceScatterContract,
		"all-gather": schedule.AllGatherContract, "barrier": schedule.BarrierContract,
		"broadcast": schedule.BroadcastContract(0), "reduce": schedule.ReduceContract(0),
	}
	for kind, contract := range contracts {
		for n := 1; n <= 9; n++ {
			all := generate(kind, n)
			if len(all) == 0 {
				t.Errorf("no %s", kind)
			}
			for name, s := range all {
				if err := schedule.Check(s, contract); err != nil {
					t.Errorf("%s by %s among %d: %v", kind, name, n, err)
				}
			}
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]size{"0": 0, "4096": 4096, "12B": 12, "1kB": 1000, "64KiB": 65536,
		"1.5MiB": 3 << 19, "2MB": 2e6, "1GiB": 1 << 30, "3GB": 3e9} {
		var got size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "B", "-1", "1e400", "1 MiB", "1TiB", "1mb", "NaN", "Inf", "99999999999GiB"} {
		var got size
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q = %d, want an error", text, got)
		}
	}
}
