package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"peermesh/mesh"
	"peermesh/ops/flight"
)

// TestLaunchKeeps trains with a record and a timeline, and has both read.
func TestLaunchKeeps(t *testing.T) {
	for _, net := range []string{netConvNet, netTutorial} {
		t.Run(net, func(t *testing.T) {
			dir := t.TempDir()
			records, trace := filepath.Join(dir, "flight"), filepath.Join(dir, "trace.json")
			s := spawn(t, "launch", "-n", "2", "--net", net, "--data", writeDigits(t), "--steps", "3", "--threads", "1", "--transport", "tcp", "--flight", records, "--trace", trace)
			if status := s.wait(t); status != 0 {
				t.Fatalf("status %d: %s", status, s.errs())
			}
			status, out, errs := in("diagnose", records)
			if status != 0 || !strings.Contains(out, "all 2 ranks have called the same operations") && !strings.Contains(out, "comes last") {
				t.Errorf("diagnose: status %d, %s%s", status, out, errs)
			}
			events := readTrace(t, trace)
			for rank := range 2 {
				spans := spansOf(events, rank)
				if len(spans["steps"]) < 3 || len(spans["collectives"]) < 3 {
					t.Errorf("rank %d: %d steps, %d collectives", rank, len(spans["steps"]), len(spans["collectives"]))
				}
			}
		})
	}
}

// TestBenchTrace has measurements drawn.
func TestBenchTrace(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace.json")
	if status, _, errs := in("bench", "-n", "2", "--transport", "memory", "--sizes", "64", "--iters", "3", "--trace", trace); status != 0 {
		t.Fatal(errs)
	}
	events := readTrace(t, trace)
	for rank := range 2 {
		if n := len(spansOf(events, rank)["collectives"]); n < 3 {
			t.Errorf("rank %d: %d collectives", rank, n)
		}
	}
}

// TestDiagnoseKilled kills one of three, and asks what happened.
func TestDiagnoseKilled(t *testing.T) {
	records := t.TempDir()
	f := newFleet(t, 3, "--transport", "tcp", "--data", writeSomeDigits(t, 1024, 50), "--epochs", "50", "--threads", "1", "--flight", records)
	f.startAll()
	eventually(t, "an epoch", func() bool { return f.everyone(func(e told) bool { return e.Event == "epoch" }) })
	f.kill(0)
	for _, i := range []int{1, 2} {
		f.now(i).wait(t)
	}
	status, out, _ := in("diagnose", "--json", records)
	var d flight.Diagnosis
	if err := json.Unmarshal([]byte(out), &d); err != nil || status != 0 {
		t.Fatal(status, err, out)
	}
	if d.Case != flight.Gone || len(d.Ranks) != 1 || len(d.Rows) != 3 || d.Rows[d.Ranks[0]].Peer != f.ids[0] {
		t.Errorf("of %s: %+v", f.ids[0], d)
	}
	if !strings.Contains(d.Sentence, "is gone and has left no record") || !strings.Contains(d.Sentence, "connection lost") {
		t.Error(d.Sentence)
	}
}

// TestQuit has a launch's ranks write what they did, and their stacks, on Ctrl-\.
func TestQuit(t *testing.T) {
	records := t.TempDir()
	s := spawn(t, append([]string{"launch", "-n", "2", "--flight", records}, endless(writeDigits(t))...)...)
	eventually(t, "an epoch", func() bool { return strings.Contains(s.out(), "[0] epoch 1/1000000: ") })
	s.signal(t, syscall.SIGQUIT)
	if status := s.wait(t); status != 128+int(syscall.SIGQUIT) {
		t.Errorf("status %d", status)
	}
	if !strings.Contains(s.errs(), "goroutine ") {
		t.Error("no stacks")
	}
	logs, err := flight.ReadDir(records)
	if err != nil || len(logs) != 2 || len(logs[0].Records) == 0 {
		t.Errorf("%d records, %v", len(logs), err)
	}
}

// TestDiagnoseNothing names what it wants.
func TestDiagnoseNothing(t *testing.T) {
	for _, dir := range []string{t.TempDir(), "/nonexistent"} {
		status, _, errs := in("diagnose", dir)
		if status != statusUsage {
			t.Errorf("%s: status %d", dir, status)
		}
		isOneLine(t, errs)
	}
}

// TestInsightKeeps writes as the flags say.
func TestInsightKeeps(t *testing.T) {
	failed := errors.New("it went wrong")
	for _, c := range []struct {
		name         string
		flight, logs bool
		err          error
		want         string // the folder that has it
	}{
		{"off", false, false, failed, ""},
		{"flight", true, false, nil, "f"},
		{"flight, failed", true, true, failed, "f"},
		{"logs", false, true, nil, ""},
		{"logs, failed", false, true, failed, filepath.Join("l", flightFolder)},
	} {
		dir := t.TempDir()
		var flags Insight
		logs := ""
		if c.flight {
			flags.Flight = filepath.Join(dir, "f")
		}
		if c.logs {
			logs = filepath.Join(dir, "l")
		}
		newInsight(flags, "m", logs).end(c.err)
		if c.want == "" {
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
				t.Errorf("%s: %v, %v", c.name, entries, err)
			}
		} else if l, err := flight.ReadDir(filepath.Join(dir, c.want)); err != nil || (l[0].Reason != "") != (c.err != nil) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestInsightShows has something to say without a folder, too.
func TestInsightShows(t *testing.T) {
	var b bytes.Buffer
	newInsight(Insight{}, "m", "").show(&b)
	if !strings.Contains(b.String(), "the last operations") {
		t.Error(b.String())
	}
	if why := reasonOf(&mesh.EndedError{Rank: 2, Err: mesh.ErrSilent}); why.Lost != 2 || why.Text == "" {
		t.Errorf("%+v", why)
	}
}
