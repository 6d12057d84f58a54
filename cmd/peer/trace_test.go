package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/ops"
	"peermesh/ops/flight/perfetto"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// readTrace reads a timeline as Perfetto would, and checks what the format asks for.
func readTrace(t *testing.T, path string) (events []perfetto.Event) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Unit   string           `json:"displayTimeUnit"`
		Events []perfetto.Event `json:"traceEvents"`
	}
	if err := json.Unmarshal(raw, &file); err != nil || file.Unit != "ms" {
		t.Fatal(file.Unit, err)
	}
	last := make(map[[2]int]float64)
	for _, e := range file.Events {
		if e.Phase != "X" {
			continue
		}
		// On one thread nothing begins before what came before has ended; the clock of
		// the format has a rounding of its own.
		if key := [2]int{e.Process, e.Track}; e.Time < last[key]-0.01 || e.Took < 0 {
			t.Errorf("%q of rank %d begins at %v µs, in what ended at %v", e.Name, e.Process, e.Time, last[key])
		} else {
			last[key] = e.Time + e.Took
		}
	}
	return file.Events
}

// spansOf are the bars of a rank, by the names of their tracks.
func spansOf(events []perfetto.Event, rank int) map[string][]perfetto.Event {
	names := make(map[int]string)
	for _, e := range events {
		if e.Name == "thread_name" && e.Process == rank {
			names[e.Track] = e.Args["name"].(string)
		}
	}
	all := make(map[string][]perfetto.Event)
	for _, e := range events {
		if e.Phase == "X" && e.Process == rank {
			all[names[e.Track]] = append(all[names[e.Track]], e)
		}
	}
	return all
}

// TestTraceOneClock has ranks whose clocks differ by seconds, and expects what they do
// together at one time.
func TestTraceOneClock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.json")
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		for _, w := range memnet.New(3) {
			all.Go(func() {
				i := newInsight(Insight{Trace: path}, "test", "")
				i.trace.enter(w.Rank())
				g := ops.NewGroup(i.trace.transport(w), i.observe(ops.Config{}))
				check := func(err error) {
					if err != nil {
						t.Error(err)
					}
				}
				check(i.trace.compare(t.Context(), g))
				if offset := i.trace.offset; offset != 0 {
					t.Errorf("clocks of one bubble differ by %v", offset)
				}
				time.Sleep(time.Duration(w.Rank()) * time.Second)
				check(i.trace.during("steps", "step 1", func() error {
					time.Sleep(time.Second)
					return g.AllReduce(t.Context(), tensor.Of(make([]float32, 1000)), tensor.Sum).Wait()
				}))
				check(i.trace.gather(t.Context(), g))
				check(i.trace.salvage())
			})
		}
		all.Wait()
	})
	events := readTrace(t, path)
	for rank := range 3 {
		spans := spansOf(events, rank)
		i := slices.IndexFunc(spans["collectives"], func(e perfetto.Event) bool { return strings.HasPrefix(e.Name, "all_reduce #0") })
		if i < 0 {
			t.Fatalf("rank %d has no all_reduce: %v", rank, spans)
		}
		// The first comes after one second, and all are done after three.
		e := spans["collectives"][i]
		if from, to := e.Time/1e6, (e.Time+e.Took)/1e6; int(from+0.5) != rank+1 || int(to+0.5) != 3 {
			t.Errorf("rank %d was in it from %v s to %v s", rank, from, to)
		}
		if note, _ := e.Args["note"].(string); !strings.Contains(note, "4000 bytes") {
			t.Errorf("rank %d notes %q", rank, note)
		}
		sent := 0
		for track, messages := range spans {
			if strings.HasPrefix(track, "send → ") {
				sent += len(messages)
			}
		}
		if len(spans["steps"]) != 1 || sent == 0 {
			t.Errorf("rank %d: %d steps, %d sends", rank, len(spans["steps"]), sent)
		}
	}
	if files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); err != nil || len(files) != 1 {
		t.Errorf("files %v, %v", files, err)
	}
}

// delayed is a transport whose messages take their time, both ways alike.
type delayed struct {
	ops.Transport
	by time.Duration
}

func (d delayed) Send(ctx context.Context, to int, lane uint64, tag ops.Tag, n int64, parts iter.Seq2[[]byte, error]) error {
	time.Sleep(d.by)
	return d.Transport.Send(ctx, to, lane, tag, n, parts)
}

// TestTraceSkew has clocks that differ by hours, on links of milliseconds, and finds by how
// much.
func TestTraceSkew(t *testing.T) {
	skew := []time.Duration{time.Minute, -3 * time.Hour, 250 * time.Millisecond}
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		for rank, w := range memnet.New(len(skew)) {
			all.Go(func() {
				l := newTimeline("")
				l.clock = func() time.Time { return time.Now().Add(skew[rank]) }
				if err := l.compare(t.Context(), ops.NewGroup(delayed{w, 7 * time.Millisecond}, ops.Config{})); err != nil {
					t.Error(err)
				}
				if want := skew[0] - skew[rank]; (l.offset - want).Abs() > time.Microsecond {
					t.Errorf("rank %d is to add %v, want %v", rank, l.offset, want)
				}
			})
		}
		all.Wait()
	})
}

// TestTracePhases has each phase end where the next begins.
func TestTracePhases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTimeline("")
		for _, name := range []string{"forward", "backward", "wait", "", "optimizer", ""} {
			l.phase(name)
			time.Sleep(time.Second)
		}
		var got []string
		for _, s := range l.part().Spans {
			got = append(got, fmt.Sprintf("%s %s %v", s.Track, s.Name, time.Duration(s.To-s.From)))
		}
		if want := "compute forward 1s, compute backward 1s, compute wait 1s, compute optimizer 1s"; strings.Join(got, ", ") != want {
			t.Errorf("%q", got)
		}
	})
	var none *timeline
	none.phase("forward")
}

// TestTraceOffset adds the offset to all that a rank has.
func TestTraceOffset(t *testing.T) {
	l := newTimeline("")
	l.enter(1)
	l.offset = time.Hour
	l.add("a", "b", time.Unix(5, 0), "")
	if p := l.part(); p.Rank != 1 || p.Spans[0].From != int64(5*time.Second+time.Hour) {
		t.Errorf("%+v", p)
	}
}

// TestTraceSalvage keeps a rank's own part when the run fails, and only the last spans.
func TestTraceSalvage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.json")
	l := newTimeline(path)
	l.enter(2)
	if err := l.salvage(); err != nil { // nothing has been done: there is no file
		t.Error(err)
	}
	for range maxSpans + 10 {
		l.add("a", "b", time.Now(), "c") // one after the other: what overlaps needs rows to be found for
	}
	if err := l.salvage(); err != nil {
		t.Fatal(err)
	}
	if n := len(readTrace(t, filepath.Join(filepath.Dir(path), "trace.2.json"))); n < maxSpans || n > 2*maxSpans+1 {
		t.Errorf("%d events", n)
	}
	l.path = filepath.Join(path, "none", "trace.json")
	if err := l.salvage(); exitStatus(err) != statusUsage {
		t.Errorf("into no folder: %v", err)
	}
}

// TestTraceRows has what overlaps side by side.
func TestTraceRows(t *testing.T) {
	got := rows([]span{{From: 5, To: 9}, {From: 0, To: 4}, {From: 3, To: 6}, {From: 4, To: 5}})
	if len(got) != 2 || len(got[0]) != 3 || len(got[1]) != 1 {
		t.Errorf("%v", got)
	}
}

// TestTraceNone is what most runs have.
func TestTraceNone(t *testing.T) {
	var l *timeline
	w := memnet.New(1)[0]
	l.add("a", "b", time.Now(), "")
	if l.transport(w) != ops.Transport(w) {
		t.Error("messages are noted without a timeline")
	}
	if err := errors.Join(l.compare(t.Context(), nil), l.gather(t.Context(), nil)); err != nil {
		t.Error(err)
	}
	var i *insight
	i.enter(nil)
	i.end(errors.New("x"))
	i.ended(nil)
	if i.timeline() != nil || i.observe(ops.Config{}).Observer != nil {
		t.Error("an insight of nothing")
	}
}
