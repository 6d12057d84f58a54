package main

import (
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"peermesh/testnet/memnet"
)

// TestLogDir trains on two ranks with folders of their own: rank 0's has a table with the
// losses and the accuracy that it reports, and an event file; rank 1's is not made.
func TestLogDir(t *testing.T) {
	for _, net := range []string{netConvNet, netTutorial} {
		dir := t.TempDir()
		at := func(rank int) string { return filepath.Join(dir, strconv.Itoa(rank)) }
		p := (&Training{Net: net, Epochs: new(1), Steps: 3, BatchSize: new(8)}).plan(2, 2)
		records, errs := everyRank(t, 2, load(t), func(int) plan { return p }, func(r *training, w *memnet.World) error {
			l := &logReporter{reporter: r.reporter, dir: at(w.Rank())}
			r.reporter = l
			return l.closeAfter(whole(t.Context(), r, w))
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(at(1)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: rank 1 has a folder: %v", net, err)
		}
		rows := table(t, filepath.Join(at(0), "metrics.csv"))
		if len(rows) != 5 { // three steps, the epoch, the test
			t.Fatalf("%s: %v", net, rows)
		}
		for i, s := range records[0].steps {
			if got := rows[i]; got["step"] != float64(s.taken) || got["train/loss"] != s.loss {
				t.Errorf("%s: step %+v is %v", net, s, got)
			}
		}
		if got := rows[4]; got["step"] != 3 || got["test/accuracy"] != records[0].accuracy || rows[3]["train/epoch_loss"] != records[0].last.loss {
			t.Errorf("%s: the end is %v and %v, want %v and %v", net, rows[3], got, records[0].last.loss, records[0].accuracy)
		}
		events, err := filepath.Glob(filepath.Join(at(0), "events.out.tfevents.*"))
		if err != nil || len(events) != 1 {
			t.Fatalf("%s: event files %v, %v", net, events, err)
		}
		p8, err := os.ReadFile(events[0])
		if err != nil || !strings.Contains(string(p8), "brain.Event:2") || strings.Count(string(p8), "train/loss") != 3 || strings.Count(string(p8), "test/accuracy") != 1 {
			t.Errorf("%s: %d bytes of events, %v", net, len(p8), err)
		}
	}
}

// table is a CSV's rows by column; what is empty is not there.
func table(t *testing.T, path string) (rows []map[string]float64) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range all[1:] {
		m := make(map[string]float64)
		for i, text := range row {
			if text != "" {
				if m[all[0][i]], err = strconv.ParseFloat(text, 64); err != nil {
					t.Fatal(err)
				}
			}
		}
		rows = append(rows, m)
	}
	return rows
}

// TestLogDirFollowsRank0 writes in the worlds in which this rank is 0, and says what it
// cannot write.
func TestLogDirFollowsRank0(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	l := &logReporter{reporter: new(record), dir: dir}
	for step, rank := range []int{2, 0, 1, 0} {
		if err := errors.Join(l.world(worldFacts{rank: rank}), l.step(stepFacts{taken: step, loss: 0.5})); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.closeAfter(nil); err != nil {
		t.Fatal(err)
	}
	if rows := table(t, filepath.Join(dir, "metrics.csv")); len(rows) != 2 || rows[0]["step"] != 1 || rows[1]["step"] != 3 {
		t.Errorf("%v", rows)
	}
	bad := &logReporter{reporter: new(record), dir: filepath.Join(dir, "metrics.csv")}
	if err := bad.step(stepFacts{}); err == nil {
		t.Error("a file has become a folder")
	}
	failed := errors.New("it has failed")
	if err := bad.closeAfter(failed); err != failed {
		t.Error(err)
	}
	var none *logReporter
	if err := none.closeAfter(failed); err != failed {
		t.Error(err)
	}
}

// TestTrainLogDir is the flag on the command line.
func TestTrainLogDir(t *testing.T) {
	dir := t.TempDir()
	status, _, stderr := in("--data", writeDigits(t), "--steps", "2", "--batch-size", "8", "--threads", "1", "--log-level", "error", "--log-dir", dir)
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, stderr %q", status, stderr)
	}
	if rows := table(t, filepath.Join(dir, "metrics.csv")); len(rows) != 4 || rows[0]["train/loss"] == 0 {
		t.Errorf("%v", rows)
	}
}
