package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// someFacts and someMeasurements are a small run.
var someFacts = facts{world: 4, where: "processes of one machine", transport: "tcp", algo: "ring", lanes: 2,
	machine: machine{cpu: "Some Processor", cores: 2, when: time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)}}

var someMeasurements = []measurement{
	{Op: "all_reduce", World: 4, Bytes: 8, Total: 8, DType: "float32", Iters: 3000, Median: 12.34, Min: 9, P10: 10, P99: 99.9, Alg: 0.00065, Bus: 0.00097, Overhead: 0.03, OK: true},
	{Op: "all_reduce", World: 4, Bytes: 64 << 20, Total: 64 << 20, DType: "float32", Iters: 5, Median: 123456, Min: 1e5, P10: 1.1e5, P99: 2345678, Alg: 0.54, Bus: 0.82, OK: true},
	{Op: "all_to_all_list", World: 4, Bytes: 1000, Total: 992, DType: "bfloat16", Iters: 100, Median: 0.5, Min: 0.4, P10: 0.45, P99: 0.9, Alg: 1.984, Bus: 1.488, OK: false},
	{Op: "barrier", World: 4, DType: "float32", Iters: 824, Median: 112.9, Min: 80, P10: 92.4, P99: 343.4, OK: true},
}

func benchText(t *testing.T, raw bool, before baseline) string {
	t.Helper()
	var b strings.Builder
	report := newBenchReporter(&b, raw, before, someFacts)
	for _, m := range someMeasurements {
		if err := report(m); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// TestBenchTable compares the table with the one that people were shown before.
func TestBenchTable(t *testing.T) {
	before := baseline{someMeasurements[0].key(): 24.68, someMeasurements[3].key(): 50}
	for file, got := range map[string]string{"bench.txt": benchText(t, false, nil), "bench_against.txt": benchText(t, false, before)} {
		// The second line depends on who has built the test.
		lines := strings.Split(got, "\n")
		if want := "Some Processor, 2 cores, "; !strings.HasPrefix(lines[1], want) || !strings.HasSuffix(lines[1], ", 29 November 2026") {
			t.Errorf("the machine is %q, want %q …", lines[1], want)
		}
		lines[1] = "MACHINE"
		golden(t, filepath.Join("testdata", file), strings.Join(lines, "\n"))
	}
}

// golden compares a text with a file, which PEER_TEST_UPDATE writes anew.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if os.Getenv("PEER_TEST_UPDATE") != "" {
		write(t, path, []byte(got))
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s (PEER_TEST_UPDATE=1 writes it anew):\n%s\nwant:\n%s", path, got, want)
	}
}

// TestBenchAligned: whatever the figures, the columns stay where their names are.
func TestBenchAligned(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(benchText(t, false, baseline{someMeasurements[0].key(): 24.68})), "\n")
	head := lines[4]
	ends := func(line, column string) int {
		return utf8.RuneCountInString(line[:strings.Index(line, column)+len(column)])
	}
	for column, figure := range map[string]string{"size": "8 B", "runs": "3000", "median": "12.3 µs", "p99": "99.9 µs", "before": "24.7 µs", "faster": "2.00×"} {
		if want, got := ends(head, column), ends(lines[5], figure); got != want {
			t.Errorf("%s ends at %d, %s at %d", column, want, figure, got)
		}
	}
}

// TestBenchJSON reads the lines back as the script that compares systems does.
func TestBenchJSON(t *testing.T) {
	text := benchText(t, true, nil)
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		var row struct {
			Op     string
			World  int
			Bytes  int64
			Median float64 `json:"median_us"`
			OK     *bool
			Bus    *float64 `json:"busbw_GBs"`
			Lanes  int
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		want := someMeasurements[i]
		if row.Op != want.Op || row.World != 4 || row.Bytes != want.Bytes || row.Median != want.Median || *row.OK != want.OK || *row.Bus != want.Bus || row.Lanes != 2 {
			t.Errorf("line %d is %s", i, line)
		}
	}
	if got := parseBaseline([]byte("a log's line\n" + text)); len(got) != 4 || got[someMeasurements[0].key()] != 12.34 {
		t.Errorf("read back: %v", got)
	}
}

func TestBaselineFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "empty"), nil)
	write(t, filepath.Join(dir, "other"), []byte(`{"event":"done"}`+"\nhello\n"))
	for _, name := range []string{"absent", "empty", "other", "."} {
		if b, err := readBaseline(filepath.Join(dir, name)); exitStatus(err) != statusUsage {
			t.Errorf("%s: %v, %v; want the usage's status", name, b, err)
		}
	}
	if b, err := readBaseline(""); b != nil || err != nil {
		t.Errorf("no file: %v, %v", b, err)
	}
}

func TestModelName(t *testing.T) {
	for text, want := range map[string]string{
		"processor\t: 0\nmodel name\t: AMD EPYC 9R14: fast\nmodel name\t: other\n": "AMD EPYC 9R14: fast",
		"BogoMIPS\t: 50.00\n": "",
		"":                    "",
	} {
		if got := modelName([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestUnits(t *testing.T) {
	for us, want := range map[float64]string{0.03: "30 ns", 12.34: "12.3 µs", 999: "999.0 µs", 1234: "1.23 ms", 2.5e6: "2.50 s "} {
		if got := duration(us); got != want {
			t.Errorf("%v µs: %q, want %q", us, got, want)
		}
	}
	for gb, want := range map[float64]string{12.345: "12.35 GB/s", 0.5: "500.0 MB/s", 0.0000125: "12.5 kB/s"} {
		if got := speed(gb); got != want {
			t.Errorf("%v GB/s: %q, want %q", gb, got, want)
		}
	}
}
