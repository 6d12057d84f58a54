package flight_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"peermesh/ops"
	"peermesh/ops/flight"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// operation is one as a group would tell of it.
func operation(id uint64) ops.Operation {
	return ops.Operation{Size: 2, Peer: -1, Algorithm: "ring", Bytes: 4096,
		Call: ops.Call{Seq: id - 1, Kind: ops.KindAllReduce, DType: tensor.Float32, Op: tensor.Sum.Code(), Count: 1024, Root: -1}}
}

func at(ms int) time.Time { return time.UnixMilli(int64(1000 + ms)) }

// TestStates has one operation in each state.
func TestStates(t *testing.T) {
	r := flight.New(8)
	for id := range uint64(4) {
		r.Begin(operation(id+1), at(int(id)))
	}
	for id := range uint64(3) {
		r.Start(id+1, at(10))
	}
	r.End(1, at(20), nil)
	r.End(2, at(30), errors.New("line\nbreak\x1b"))
	var got []string
	for _, o := range r.Records() {
		got = append(got, fmt.Sprint(o.ID, o.Call, o.State, o.Begun/1e6, o.Started/1e6, o.Ended/1e6, o.Error))
	}
	want := []string{
		"1all_reduce #0 (float32 × 1024, sum)done1000 1010 1020",
		"2all_reduce #1 (float32 × 1024, sum)failed1001 1010 1030line break",
		"3all_reduce #2 (float32 × 1024, sum)started1002 1010 0",
		"4all_reduce #3 (float32 × 1024, sum)scheduled1003 0 0",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestRing keeps the last ones; what lasts for longer than the ring remembers does not
// disturb those that have taken its place.
func TestRing(t *testing.T) {
	r := flight.New(3)
	for id := range uint64(5) {
		r.Begin(operation(id+1), at(0))
	}
	r.Start(1, at(1))
	r.End(2, at(1), errors.New("of another"))
	all := r.Records()
	if len(all) != 3 || all[0].ID != 3 || all[2].ID != 5 {
		t.Fatalf("kept %v", all)
	}
	for _, o := range all {
		if o.State != flight.Scheduled {
			t.Errorf("operation %d is %s", o.ID, o.State)
		}
	}
	if n := len(flight.New(flight.MaxPlaces+5).Records()) + len(flight.New(-1).Records()); n != 0 {
		t.Errorf("%d operations in new ones", n)
	}
}

// TestRoundTrip reads what was written, in a folder that did not exist, twice.
func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	r := flight.New(4)
	r.Enter(flight.World{Name: "m", Epoch: 3, Rank: 1, Size: 2, Peers: []string{"x", "y"}})
	o := operation(1)
	o.Group, o.Size, o.Members = 7, 1, []int{1}
	r.Begin(o, at(0))
	for range 2 {
		path, err := r.WriteFile(dir, flight.Reason{Text: "why", Lost: 0})
		if err != nil || filepath.Base(path) != "flight-1.jsonl" {
			t.Fatal(path, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files, %v", len(entries), err)
	}
	logs, err := flight.ReadDir(dir)
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	want := r.Log(flight.Reason{Text: "why", Lost: 0})
	want.Time = logs[0].Time
	if !reflect.DeepEqual(logs[0], want) {
		t.Errorf("got  %+v\nwant %+v", logs[0], want)
	}
}

// TestWriteFails leaves nothing behind where there is no room.
func TestWriteFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := flight.New(1).WriteFile(file, flight.Reason{}); err == nil {
		t.Error("a file was taken for a folder")
	}
	if err := flight.New(1).Log(flight.Reason{}).Write(full{}); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

const head = `{"flight":1,"time":5,"lost":-1,"world":{"epoch":1,"rank":0,"size":2}}` + "\n"

// TestReadBad refuses what no Recorder has written.
func TestReadBad(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"", "empty"},
		{"hello\n", "no flight record"},
		{`{"flight":2}`, "version 2"},
		{`{"flight":1,"world":{"rank":2,"size":2}}`, "rank 2 of 2"},
		{`{"flight":1,"world":{"rank":0,"size":99999}}`, "of 99999"},
		{`{"flight":1,"world":{"rank":0,"size":2,"peers":["a"]}}`, "1 peers of 2"},
		{`{"flight":1,"lost":2,"world":{"rank":0,"size":2}}`, "lost rank 2"},
		{`{"flight":1,"groups":[{"id":1,"ranks":[-4]}],"world":{"rank":0,"size":2}}`, "ranks [-4]"},
		{head + "{", "line 2"},
		{head + `{"state":"asleep"}`, `state "asleep"`},
		{head + `{"state":"done","peer":-7}`, "peer -7"},
		{head + strings.Repeat(`{"state":"done"}`+"\n", flight.MaxPlaces+1), "more than"},
		{head + strings.Repeat("x", 2<<20), "too long"},
	} {
		_, err := flight.Read(strings.NewReader(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80q: %v, want %q", c.file, err, c.want)
		}
	}
}

// TestReadDirBad names the file that is at fault.
func TestReadDirBad(t *testing.T) {
	dir := t.TempDir()
	if _, err := flight.ReadDir(dir); err == nil || !strings.Contains(err.Error(), "no flight-*.jsonl") {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := flight.ReadDir(filepath.Join(dir, "none")); err == nil {
		t.Error("no folder: no error")
	}
	path := filepath.Join(dir, "flight-0.jsonl")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := flight.ReadDir(dir); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a bad file: %v", err)
	}
}

// TestConcurrent reads while ranks write, for the race detector.
func TestConcurrent(t *testing.T) {
	r := flight.New(16)
	var all sync.WaitGroup
	for _, w := range memnet.New(2) {
		all.Go(func() {
			g := ops.NewGroup(w, ops.Config{Observer: r})
			if err := sums(t.Context(), g, 100); err != nil {
				t.Error(err)
			}
		})
	}
	for range 20 {
		if n := len(r.Log(flight.Reason{}).Records); n > 16 {
			t.Errorf("%d records", n)
		}
	}
	all.Wait()
}

// TestOfWorlds takes the last world's records, and says that others were left aside.
func TestOfWorlds(t *testing.T) {
	log := func(epoch uint64, rank, size int) *flight.Log {
		return &flight.Log{Header: flight.Header{Flight: 1, Lost: -1, World: flight.World{Epoch: epoch, Rank: rank, Size: size}}}
	}
	d, err := flight.Diagnose([]*flight.Log{log(1, 0, 3), log(1, 1, 3), log(2, 1, 2)})
	if err != nil || d.Case != flight.Gone || d.Aside != 2 || len(d.Rows) != 2 || !d.Rows[0].Missing {
		t.Errorf("%+v, %v", d, err)
	}
	if !strings.Contains(d.String(), "2 records of other worlds") {
		t.Error(d)
	}
	for _, none := range [][]*flight.Log{nil, {log(0, 0, 0)}} {
		if _, err := flight.Diagnose(none); err == nil {
			t.Errorf("%v: no error", none)
		}
	}
}

// TestSoon has operations that were about to start when they were begun: their start tells
// the time of both, and until then it is the time of whoever looks.
func TestSoon(t *testing.T) {
	r := flight.New(4)
	before := time.Now()
	id := r.Begin(operation(1), time.Time{})
	if f := r.InFlight(1); len(f) != 1 || f[0].Started || f[0].Begun.Before(before) || f[0].Begun.After(time.Now()) {
		t.Errorf("in flight: %+v", f)
	}
	if o := r.Records()[0]; o.State != flight.Scheduled || o.Begun < before.UnixNano() || o.Begun > time.Now().UnixNano() {
		t.Errorf("recorded: %+v", o)
	}
	r.Start(id, at(7))
	r.End(id, at(9), nil)
	if o := r.Records()[0]; o.Begun != at(7).UnixNano() || o.Started != o.Begun || o.Ended != at(9).UnixNano() {
		t.Errorf("recorded: %+v", o)
	}
}

// TestStuck has no world of its own: data that does not flow is no bug of a program.
func TestStuck(t *testing.T) {
	var logs []*flight.Log
	for rank := range 2 {
		r := flight.New(0)
		r.Enter(flight.World{Epoch: 1, Rank: rank, Size: 2})
		r.Begin(operation(1), at(0))
		r.Start(1, at(0))
		logs = append(logs, r.Log(flight.Reason{Lost: -1}))
	}
	d, err := flight.Diagnose(logs)
	if err != nil || d.Case != flight.Stuck || !strings.HasPrefix(d.Sentence, "every rank is in all_reduce #0") {
		t.Errorf("%+v, %v", d, err)
	}
}

// FuzzRead has anything read and diagnosed: it ends, in an error or in printable text.
func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	r := flight.New(4)
	r.Enter(flight.World{Epoch: 1, Rank: 0, Size: 2})
	r.Begin(operation(1), at(0))
	if err := r.Log(flight.Reason{Lost: -1}).Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes(), b.Bytes())
	f.Add([]byte(head+`{"state":"failed","kind":"send","peer":1}`), []byte(head))
	f.Add([]byte(head+`{"state":"failed","size":2,"error":"\u001b[2J"}`), []byte(`{"flight":1,"world":{"rank":1,"size":2,"epoch":1},"groups":[{"id":0,"epoch":1,"ranks":[1]}]}`))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		var logs []*flight.Log
		for _, file := range [][]byte{one, two} {
			if l, err := flight.Read(bytes.NewReader(file)); err == nil {
				logs = append(logs, l)
			}
		}
		d, err := flight.Diagnose(logs)
		if err != nil {
			return
		}
		if text := d.String(); strings.ContainsRune(text, '\x1b') || d.Case == "" {
			t.Errorf("%q", text)
		}
	})
}

// BenchmarkAllReduce times a small all-reduce with a recorder and without, in turns. The
// share is what the recorder adds.
func BenchmarkAllReduce(b *testing.B) {
	const block = 64
	run := func(observer func() ops.Observer) func() time.Duration {
		worlds := memnet.New(2)
		groups := make([]*ops.Group, len(worlds))
		for i, w := range worlds {
			groups[i] = ops.NewGroup(w, ops.Config{Observer: observer()})
		}
		return func() time.Duration {
			begin := time.Now()
			var all sync.WaitGroup
			for _, g := range groups {
				all.Go(func() {
					x := tensor.Of(make([]float32, 16<<10))
					for range block {
						if err := g.AllReduce(b.Context(), x, tensor.Sum).Wait(); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
			return time.Since(begin)
		}
	}
	without := run(func() ops.Observer { return nil })
	with := run(func() ops.Observer { return flight.New(0) })
	var plain, recorded []time.Duration
	for b.Loop() {
		plain = append(plain, without())
		recorded = append(recorded, with())
	}
	p, r := median(plain), median(recorded)
	b.ReportMetric(float64(p)/block, "plain-ns/op")
	b.ReportMetric(float64(r-p)/block, "added-ns/op")
	b.ReportMetric(100*float64(r-p)/float64(p), "%added")
}

func median(times []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(times))[len(times)/2]
}
