package main

import (
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"peermesh/mesh"
)

// someEpoch has a value in every field.
var someEpoch = epochFacts{epoch: 2, steps: 200, loss: 0.5, lastLoss: 0.25, losses: []float64{0.625, 0.25, 0.5, 0.625}, hash: "c0ffee",
	samples: 12800, marks: 5e9, elapsed: 4 * time.Second}

// noon is when everything happens.
func noon() time.Time { return time.Date(2026, 11, 29, 12, 0, 0, 1000, time.UTC) }

// jsonAtNoon is a reporter for programs whose clock stands still.
func jsonAtNoon(w io.Writer, rank, size int) reporter {
	r := newReporter("json", w, rank, size, 80)
	r.(*jsonReporter).now = noon
	return r
}

// play tells a reporter a short run.
func play(t *testing.T, r reporter) {
	t.Helper()
	err := errors.Join(
		r.listening([]entrance{{command: "peer --bootstrap /a --world 4"}, {how: "over QUIC", command: "peer --bootstrap /b --world 4"}}, []string{"/a"}),
		r.started(startFacts{rank: 0, world: 4, peer: "12D3Koo", net: "convnet", parameters: 300426, epochs: 2, steps: 200, batch: 32, threads: 2}),
		r.step(stepFacts{epoch: 2, step: 1, steps: 100, loss: 0.75, samples: 128, elapsed: time.Second}),
		r.step(stepFacts{epoch: 2, step: 2, steps: 100, loss: 0.5, samples: 256, elapsed: 2 * time.Second}),
		r.epoch(someEpoch),
		r.done(someEpoch, 0.975),
	)
	if err != nil {
		t.Fatal(err)
	}
}

// TestJSONSchema compares the lines byte by byte: programs depend on them.
func TestJSONSchema(t *testing.T) {
	var b strings.Builder
	play(t, jsonAtNoon(&b, 0, 4))
	const want = `{"event":"listening","time":"2026-11-29T12:00:00.000001Z","rank":0,"world":4,"addrs":["/a"]}
{"event":"epoch","time":"2026-11-29T12:00:00.000001Z","rank":0,"world":4,"epoch":2,"steps":200,"loss":0.5,"last_loss":0.25,"losses":[0.625,0.25,0.5,0.625],"params_hash":"c0ffee","samples_per_second":3200,"seconds":4,"samples":12800,"samples_sum":5000000000}
{"event":"done","time":"2026-11-29T12:00:00.000001Z","rank":0,"world":4,"epochs":2,"steps":200,"loss":0.5,"last_loss":0.25,"losses":[0.625,0.25,0.5,0.625],"accuracy":0.975,"params_hash":"c0ffee","samples_per_second":3200,"seconds":4,"samples":12800}
`
	if b.String() != want {
		t.Errorf("got  %s\nwant %s", b.String(), want)
	}
}

// TestJSONZeros keeps the keys that a reader counts on when their values are
// zero, or losses that no JSON number can be.
func TestJSONZeros(t *testing.T) {
	var b strings.Builder
	r := jsonAtNoon(&b, 0, 1)
	f := epochFacts{epoch: 1, steps: 1, loss: math.NaN(), losses: []float64{math.Inf(1)}, hash: "0"}
	if err := r.done(f, 0); err != nil {
		t.Fatal(err)
	}
	const want = `{"event":"done","time":"2026-11-29T12:00:00.000001Z","rank":0,"world":1,"epochs":1,"steps":1,"loss":null,"last_loss":0,"losses":[null],"accuracy":0,"params_hash":"0","samples_per_second":0,"seconds":0}` + "\n"
	if b.String() != want {
		t.Errorf("got  %s\nwant %s", b.String(), want)
	}
}

// TestText compares what people read when there is no terminal. The second
// step comes too soon after the first for a line of its own.
func TestText(t *testing.T) {
	var b strings.Builder
	play(t, newReporter("text", &b, 0, 4, 0))
	const want = `waiting for the others; each joins with
    peer --bootstrap /a --world 4
or, over QUIC, with
    peer --bootstrap /b --world 4
rank 0 of 4 is 12D3Koo
convnet: 300426 parameters, 200 steps, batch 32 on each of 4 ranks, 2 threads a rank
epoch 2/2  step 1/100  loss 0.7500  128 samples/s
Rank 0 , epoch 2 : 0.625000
epoch 2/2: loss 0.500000, 4.0 s, 3200 samples/s; parameters c0ffee on each of 4 ranks
loss 0.625000, test accuracy 97.50 %, wall time 4.0 s
`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}

// TestTextOtherRanks is brief: rank 0 speaks for the world.
func TestTextOtherRanks(t *testing.T) {
	var b strings.Builder
	r := newReporter("text", &b, 3, 4, 80)
	err := errors.Join(
		r.started(startFacts{rank: 3, world: 4, peer: "12D3Koo", epochs: 2}),
		r.step(stepFacts{epoch: 2, step: 1, steps: 100, loss: 0.75}),
		r.epoch(someEpoch),
		r.done(someEpoch, 0.975))
	const want = "rank 3 of 4 is 12D3Koo\nRank 3 , epoch 2 : 0.625000\nloss 0.625000\n"
	if err != nil || b.String() != want {
		t.Errorf("%v, got:\n%s\nwant:\n%s", err, b.String(), want)
	}
}

// TestBar looks at what a terminal shows.
func TestBar(t *testing.T) {
	var b strings.Builder
	play(t, newReporter("text", &b, 0, 4, 120))
	_, bar, ok := strings.Cut(b.String(), "\r")
	if !ok {
		t.Fatalf("no bar in %q", b.String())
	}
	bar, rest, _ := strings.Cut(bar, "\r")
	for _, want := range []string{"epoch 2/2", "loss 0.7500", "128 samples/s", "1%", "|"} {
		if !strings.Contains(bar, want) {
			t.Errorf("the bar %q lacks %q", bar, want)
		}
	}
	if strings.ContainsAny(bar, "\n\x1b") || len([]rune(bar)) > 120 {
		t.Errorf("the bar does not fit its line: %q", bar)
	}
	if !strings.HasPrefix(rest, "Rank 0 , epoch 2") {
		t.Errorf("after the bar comes %q", rest)
	}
}

// lost is the end of a world by a death.
var lost = &mesh.EndedError{Epoch: 3, Rank: 2, Peer: "lost", Err: mesh.ErrLost}

// worldly tells a reporter of three worlds.
func worldly(t *testing.T, r reporter) {
	t.Helper()
	err := errors.Join(
		r.world(worldFacts{epoch: 3, rank: 1, size: 4, peer: "12D3Koo", relayed: []int{0, 2}}),
		r.step(stepFacts{epoch: 1, taken: 1, first: true}),
		r.ended(worldFacts{epoch: 3, rank: 1, size: 4, peer: "12D3Koo", cause: lost}),
		r.world(worldFacts{epoch: 4, rank: 0, size: 3, peer: "12D3Koo", cause: lost}),
		r.step(stepFacts{epoch: 1, taken: 7, first: true}),
		r.step(stepFacts{epoch: 1, taken: 8}),
		r.ended(worldFacts{epoch: 4, rank: 0, size: 3, peer: "12D3Koo", cause: &mesh.EndedError{Epoch: 4, Err: mesh.ErrGrow}}),
	)
	if err != nil {
		t.Fatal(err)
	}
}

// TestWorldsJSON: a program can tell who was lost, when, and when the run went on.
func TestWorldsJSON(t *testing.T) {
	var b strings.Builder
	worldly(t, jsonAtNoon(&b, 0, 4))
	who := lost.Peer.String()
	want := strings.NewReplacer("NOON", "2026-11-29T12:00:00.000001Z", "LOST", who).Replace(
		`{"event":"world","time":"NOON","rank":1,"world":4,"epoch":3,"size":4,"peer":"12D3Koo","relayed":[0,2]}
{"event":"ended","time":"NOON","rank":1,"world":4,"epoch":3,"size":4,"peer":"12D3Koo","cause":"mesh: world 3 ended: rank 2 (LOST): connection lost","lost_rank":2,"lost_peer":"LOST"}
{"event":"world","time":"NOON","rank":0,"world":3,"epoch":4,"size":3,"peer":"12D3Koo","cause":"mesh: world 3 ended: rank 2 (LOST): connection lost","lost_rank":2,"lost_peer":"LOST"}
{"event":"resumed","time":"NOON","rank":0,"world":3,"epoch":1,"steps":7}
{"event":"ended","time":"NOON","rank":0,"world":3,"epoch":4,"size":3,"peer":"12D3Koo","cause":"mesh: world 4 ended: rank 0 (): others wait to be let in"}
`)
	if b.String() != want {
		t.Errorf("got  %s\nwant %s", b.String(), want)
	}
}

// TestWorldsText: one line when a world ends, and one when the next one goes on.
func TestWorldsText(t *testing.T) {
	var b strings.Builder
	r := newReporter("text", &b, 3, 4, 0)
	worldly(t, r)
	want := "world 3: rank 1 reaches rank 0, 2 through a relay\n" +
		"world 3 has ended: rank 2 (" + lost.Peer.String() + "): connection lost\n" +
		"world 4: rank 0 of 3 goes on\n" +
		"epoch 1/0  step 0/0  loss 0.0000  0 samples/s\n" +
		"world 4 has ended: others wait to be let in\n"
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}

func TestRate(t *testing.T) {
	if got := rate(100, 0); got != 0 {
		t.Errorf("a run of no time: %v samples/s, want 0", got)
	}
	if got := rate(100, 2*time.Second); got != 50 {
		t.Errorf("rate = %v, want 50", got)
	}
}
