package watch

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"
)

// What a scribe writes is what encoding/json does, at every point of a curve's growth: as
// it is thinned out, with a loose point at its end and without, and with numbers that JSON
// has no word for.
func TestScribeWritesStates(t *testing.T) {
	board, _ := fakeBoard(4)
	now := board.now()
	board.now = func() time.Time { return now }
	var s scribe
	for step := 901; step < 901+3*maxPoints; step++ {
		loss := 1 / float64(step)
		if step%100 == 0 {
			loss = math.NaN()
		}
		board.Step(3, step, 128, loss)
		switch {
		case step == 1000:
			board.Tested(step, 0.98)
		case step == 1200:
			board.Exit(errors.New("a <b> & \"c\""), 2)
		case step%7 != 0 && step < 901+2*maxPoints:
			continue // not every state is written
		}
		same(t, s.write(board), board)
	}
}

// A page opens before there is a world; lists are empty then, not null.
func TestScribeBeforeTheFirstWorld(t *testing.T) {
	board := New(Config{Title: "convnet", Wanted: 4})
	now := board.now()
	board.now = func() time.Time { return now }
	var s scribe
	text := s.write(board)
	same(t, text, board)
	var lists map[string]any
	if err := json.Unmarshal(text, &lists); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ranks", "links", "gone", "flights", "kinds", "events"} {
		if list, ok := lists[name].([]any); !ok || len(list) != 0 {
			t.Errorf("%s: %v", name, lists[name])
		}
	}
}

func same(t *testing.T, text []byte, board *Board) {
	t.Helper()
	state := board.State()
	want, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	var got, wanted any
	if err := errors.Join(json.Unmarshal(text, &got), json.Unmarshal(want, &wanted)); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if !reflect.DeepEqual(got, wanted) {
		t.Fatalf("written\n%s\nwant\n%s", text, want)
	}
}

// To write a state anew takes no more memory than its few short parts, and the names of
// the ranks that are not there, do.
func TestScribeKeepsItsMemory(t *testing.T) {
	board, _ := fakeBoard(64)
	var s scribe
	s.write(board)
	before := cap(s.text)
	if n := testing.AllocsPerRun(20, func() { s.write(board) }); n > 250 {
		t.Errorf("%v allocations", n)
	}
	if cap(s.text) != before {
		t.Errorf("%d bytes have become %d", before, cap(s.text))
	}
}

// A page that takes nothing for a while has the newest state next, and what it writes
// stays as it is meanwhile.
func TestSlowPage(t *testing.T) {
	board, _ := fakeBoard(2)
	s := serve(t, board, Options{})
	p, ok := s.enter()
	if !ok {
		t.Fatal("no room for a page")
	}
	defer s.exit(p)
	for step := 901; step < 940; step++ {
		board.Step(3, step, 128, 0.1)
		s.publish()
		if step%4 != 0 {
			continue
		}
		text := <-p.fresh
		var state State
		if err := json.Unmarshal(text, &state); err != nil || state.Train.Step != step {
			t.Fatalf("step %d after %d, %v", state.Train.Step, step, err)
		}
		copied := slices.Clone(text)
		s.publish()
		s.publish()
		if !slices.Equal(text, copied) {
			t.Fatal("a state has changed while it was written")
		}
		p.spent <- text
	}
}
