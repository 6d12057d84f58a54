package main

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"

	"peermesh/cmd/peer/internal/watch"
)

func TestWatchingFlags(t *testing.T) {
	for line, want := range map[string]string{
		"train --http 8080":       "not an address",
		"train --pprof":           "--pprof is given without --http",
		"launch -n 2 --http here": "not an address",
		"train --http :0 --pprof": "",
		"launch -n 2 --http :0":   "",
		"train --quiet --json":    "",
	} {
		_, err := parse(strings.Fields(line), nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
	c := trainCmd{Training: Training{Log: "text", Watching: Watching{JSON: true}}}
	if c.abbreviated(); c.Log != "json" {
		t.Errorf("--json is --log %s", c.Log)
	}
}

// An address that another program has is told with what to do.
func TestWatchingSaysThatAPortIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := &trainCmd{Training: Training{Watching: Watching{HTTP: l.Addr().String()}}}
	if _, err = newWatching(c, nil); err == nil || !strings.Contains(err.Error(), "choose another port") {
		t.Errorf("%v", err)
	}
	if _, usage := errors.AsType[*usageError](err); !usage {
		t.Errorf("%T is no usage error", err)
	}
}

// What is reported is shown, and passed on.
func TestWatchReporterShows(t *testing.T) {
	var b bytes.Buffer
	w := &watching{board: watch.New(watch.Config{Wanted: 1})}
	r := w.reporter(newReporter("text", &b, 0, 1, 0))
	steps := []error{
		r.started(startFacts{net: "convnet", epochs: 1, steps: 3}),
		r.step(stepFacts{epoch: 1, step: 1, steps: 3, taken: 1, samples: 128, loss: 2}),
		r.step(stepFacts{epoch: 1, step: 2, steps: 3, taken: 2, samples: 256, loss: 1}),
		r.epoch(epochFacts{epoch: 1, steps: 2, loss: 1, losses: []float64{1}}),
		r.done(epochFacts{epoch: 1, steps: 2, loss: 1, losses: []float64{1}}, 0.5),
	}
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
	s := w.board.State()
	if s.Train.Step != 2 || s.Train.Loss != 1 || s.Train.Steps != 3 || !s.Train.Done || *s.Train.Accuracy != 0.5 || len(s.Curves.EpochLoss.Points) != 1 {
		t.Errorf("shown: %+v", s.Train)
	}
	if !strings.Contains(b.String(), "test accuracy 50.00 %") {
		t.Errorf("printed: %s", b.String())
	}
}

// --quiet leaves the result.
func TestQuietSaysHowItEnds(t *testing.T) {
	var b bytes.Buffer
	r := newReporter("text", &b, 0, 4, 120)
	r.(*textReporter).quiet = true
	play(t, r)
	if lines := strings.Split(strings.TrimSpace(b.String()), "\n"); !strings.Contains(lines[len(lines)-1], "test accuracy") || strings.Contains(b.String(), "epoch") {
		t.Errorf("printed: %s", b.String())
	}
}

func TestTrafficIsLegible(t *testing.T) {
	for bytes, want := range map[float64]string{12: "12 B/s", 1234: "1.23 kB/s", 45.6e6: "45.6 MB/s", 7.89e9: "7.89 GB/s"} {
		if got := traffic(bytes); got != want {
			t.Errorf("%v is %s, want %s", bytes, got, want)
		}
	}
	if got := progress(stepFacts{loss: 0.5, samples: 10, elapsed: 1e9, bytes: 2e6}); got != "loss 0.5000  10 samples/s  2 MB/s" {
		t.Errorf("%s", got)
	}
}
