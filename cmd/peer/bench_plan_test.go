package main

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseSizes(t *testing.T) {
	for text, want := range map[string][]int64{
		"8":               {8},
		"8,1KiB":          {8, 1024},
		"4,1024,1048576":  {4, 1024, 1 << 20},
		"1KiB..8KiB":      {1024, 2048, 4096, 8192},
		"8..64*4,1MB":     {8, 32, 1e6},
		"8..9":            {8},
		"512MiB..8GiB*16": {512 << 20, 8 << 30},
	} {
		if got, err := parseSizes(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "8,", "8..4", "8..", "..8", "9GiB", "8..64*1", "8..64*x", "8..64*", "x", strings.Repeat("1,", 300) + "1"} {
		if got, err := parseSizes(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}

func TestParseOps(t *testing.T) {
	for text, want := range map[string]string{
		"all_reduce,broadcast": "[all_reduce broadcast]",
		"all-to-all-list":      "[all_to_all_list]",
		"latency,bw":           "[pingpong stream]",
		"all": "[pingpong stream sendrecv all_reduce broadcast all_gather reduce gather scatter all_to_all" +
			" all_to_all_list reduce_scatter barrier]",
	} {
		plan, err := (&benchCmd{Op: text, Sizes: "8", DTypes: "float32"}).plan()
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.String(); !strings.HasPrefix(got, "--op "+want+", --sizes [8], --dtypes [float32], ") {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

// TestPlanFits has the longest settings that ranks can compare.
func TestPlanFits(t *testing.T) {
	sizes := strings.TrimSuffix(strings.Repeat("8589934592,", maxBenchSizes), ",")
	plan, err := (&benchCmd{Op: "all", Sizes: sizes, DTypes: "all", Budget: 1.0 / 3}).plan()
	if err != nil {
		t.Fatal(err)
	}
	if got := len(plan.String()); got > settingsSize {
		t.Errorf("a plan of %d bytes, want at most %d", got, settingsSize)
	}
}

// TestBenchJoinCommand reads the command for the other peers back in: all that
// ranks must have alike is alike.
func TestBenchJoinCommand(t *testing.T) {
	const flags = "bench --world 4 --op all_reduce --sizes 8..1KiB --dtypes int8 --iters 7 --warmup 2 --budget 0.5 --algo ring --lanes 2 --measure --transport tcp --mesh m --secret s"
	first, err := parse(strings.Fields(flags), nil)
	if err != nil {
		t.Fatal(err)
	}
	line := first.(*benchCmd).joinCommand("/ip4/10.0.0.1/tcp/4001/p2p/" + somePeer)
	again, err := parse(strings.Fields(line)[1:], nil)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	want, got := first.(*benchCmd), again.(*benchCmd)
	got.Bootstrap = nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", line, got, want)
	}
}
