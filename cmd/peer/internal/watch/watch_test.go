package watch

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"peermesh/ops"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop")) // of the tests' client
}

func TestReportTravels(t *testing.T) {
	r := &report{Step: 1 << 40, Age: time.Hour, Inside: 59 * time.Minute, Steps: 7, Samples: 12.5, Kind: ops.KindBarrier, Seq: 99, Waits: time.Second, First: 3}
	for i := range maxLinks {
		r.Links = append(r.Links, linkReport{time.Duration(i) * time.Microsecond, float64(i << 10), float64(i << 20)})
	}
	p := r.encode()
	if len(p) > ops.MaxSignal {
		t.Errorf("%d bytes are more than a signal", len(p))
	}
	got, err := decodeReport(p, 3+maxLinks)
	if err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, r)
	}
	if _, err := decodeReport(p, 2+maxLinks); err == nil {
		t.Error("a link to a rank that there is not")
	}
	huge := &report{Age: 1 << 62, Inside: -1, Links: []linkReport{{1 << 62, math.Inf(1), -5}}}
	if got, err := decodeReport(huge.encode(), 1); err != nil || got.Inside != 0 || got.Links[0].Received != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzDecodeReport(f *testing.F) {
	f.Add([]byte{question}, 4)
	f.Add((&report{Links: []linkReport{{1000, 2048, 4096}}}).encode(), 2)
	f.Fuzz(func(t *testing.T, p []byte, ranks int) {
		r, err := decodeReport(p, ranks)
		if err != nil {
			return
		}
		if len(r.Links) > 255 || r.First+len(r.Links) > ranks {
			t.Fatalf("%d links from %d of %d", len(r.Links), r.First, ranks)
		}
		if again, err := decodeReport(r.encode(), ranks); err != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("%+v became %+v, %v", r, again, err)
		}
	})
}

// A curve keeps its end and its shape, in bounded room.
func TestCurve(t *testing.T) {
	var c Curve
	for i := range 100_000 {
		c.add(float64(i), float64(2*i))
		if len(c.Points) > maxPoints {
			t.Fatalf("%d points", len(c.Points))
		}
		if last := c.Points[len(c.Points)-1]; last != [2]float64{float64(i), float64(2 * i)} {
			t.Fatalf("the last of %d is %v", i, last)
		}
	}
	gap := c.Points[1][0] - c.Points[0][0]
	for i := 1; i < len(c.Points)-1; i++ {
		if c.Points[i][0]-c.Points[i-1][0] != gap {
			t.Fatalf("point %d is at %v, the one before at %v", i, c.Points[i], c.Points[i-1])
		}
	}
	if len(c.Points) < maxPoints/4 {
		t.Errorf("only %d points", len(c.Points))
	}
}

func TestNumbersInJSON(t *testing.T) {
	p, err := Points{{1, math.NaN()}, {2, math.Inf(-1)}, {3, 0.123456789}, {4e9, -2}}.MarshalJSON()
	if want := "[[1,null],[2,null],[3,0.123457],[4000000000,-2]]"; err != nil || string(p) != want {
		t.Errorf("%s, %v", p, err)
	}
	for n, want := range map[Number]string{1.5: "1.5", Number(math.Inf(1)): "null"} {
		if p, err := n.MarshalJSON(); err != nil || string(p) != want {
			t.Errorf("%v is %s, %v", float64(n), p, err)
		}
	}
}

// states are those of the ranks, as words.
func states(s *State) string {
	var words []string
	for _, r := range s.Ranks {
		words = append(words, r.State)
	}
	return strings.Join(words, " ")
}

// clocked is a board whose time the test makes pass.
func clocked(size int) (*Board, *fakeWorld, *time.Time) {
	clock := time.Now()
	b := New(Config{Wanted: size})
	b.now = func() time.Time { return clock }
	w := newFake(0, size)
	b.Enter(w.place())
	return b, w, &clock
}

func TestRanksThatAreSilentOrLost(t *testing.T) {
	b, w, clock := clocked(4)
	if got := states(b.State()); got != "unknown unknown unknown unknown" {
		t.Errorf("at first %s", got)
	}
	b.Ask()
	if got := states(b.State()); got != "here here here here" {
		t.Errorf("once asked %s", got)
	}
	w.mute[2] = true
	*clock = clock.Add(silence + time.Second)
	b.Ask()
	if got := states(b.State()); got != "here here silent here" {
		t.Errorf("after a silence %s", got)
	}
	b.Exit(errors.New("connection lost"), 2)
	b.Exit(errors.New("again"), 3)
	s := b.State()
	if got := states(s); got != "here here gone here" || !s.World.Ended {
		t.Errorf("after the end %s, %+v", got, s.World)
	}
	if last := s.Events[len(s.Events)-1].Text; last != "world 1 has ended: connection lost" {
		t.Errorf("the last event: %s", last)
	}
	asked := w.questions()
	if b.Ask(); w.questions() != asked {
		t.Error("a world that has ended is asked")
	}
}

func TestSlowRank(t *testing.T) {
	b, _, _ := clocked(3)
	b.mu.Lock()
	for step := range uint32(9) {
		for rank, work := range []time.Duration{10, 11, 30} {
			age := time.Duration(step) * 100 * time.Millisecond
			b.keep(rank, &report{Steps: step, Age: age, Inside: age - time.Duration(step)*work*time.Millisecond})
		}
	}
	b.mu.Unlock()
	if got := states(b.State()); got != "here here slow" {
		t.Errorf("%s", got)
	}
	if work := b.State().Ranks[2].Work; math.Abs(work-0.03) > 1e-9 {
		t.Errorf("works %v", work)
	}
}

// A report's links are some of a large world's; those of earlier reports stay.
func TestLinksOfManyRanks(t *testing.T) {
	b, _, clock := clocked(64)
	for range 8 {
		*clock = clock.Add(time.Second)
		b.Ask()
	}
	s := b.State()
	own := 0
	for _, l := range s.Links {
		if l[0] >= l[1] || l[1] >= 64 {
			t.Fatalf("link %v", l)
		}
		if l[0] == 0 {
			own++
			if want := float64(min(trip(0, int(l[1])), trip(int(l[1]), 0)).Microseconds()); l[2] != want || (l[5] == 1) != (int(l[1])%8 == 5) {
				t.Errorf("link %v, want %v µs", l, want)
			}
		}
	}
	if own != 63 || len(s.Links) < 63*64/4 {
		t.Errorf("%d links, %d of them ours", len(s.Links), own)
	}
}

// A page here takes no turn of the links that others are told.
func TestOwnPageTakesNoTurn(t *testing.T) {
	b, _, clock := clocked(maxLinks + 1)
	for _, want := range []int{0, maxLinks, 0} {
		*clock = clock.Add(time.Second)
		b.Ask()
		if r := b.say(b.place); r.First != want || len(r.Links) != min(maxLinks, maxLinks+1-want) {
			t.Errorf("%d links from %d on, want them from %d on", len(r.Links), r.First, want)
		}
	}
}

// Reports answer what is asked, as long as the world is the one that they are of.
func TestAnswers(t *testing.T) {
	b, w, _ := clocked(3)
	b.Step(1, 5, 10, 0.5)
	var got *report
	b.hear(&Place{World: recorder{w, &got}, Peer: peerName(1), Relayed: func(int) bool { return false }}, 1, []byte{question})
	if got == nil || got.Step != 5 || got.Steps != 1 {
		t.Errorf("answered %+v", got)
	}
	before := states(b.State())
	b.hear(b.place, 1, []byte("nonsense"))
	b.hear(&Place{World: newFake(0, 3)}, 1, (&report{}).encode())
	if after := states(b.State()); after != before {
		t.Errorf("%s became %s", before, after)
	}
}

// A recorder keeps the report that is sent.
type recorder struct {
	*fakeWorld
	got **report
}

func (r recorder) Signal(to int, channel uint32, p []byte) (err error) {
	*r.got, err = decodeReport(p, r.size)
	return err
}

func TestWorldsFollowEachOther(t *testing.T) {
	b, w, clock := clocked(4)
	*clock = clock.Add(time.Second)
	b.Exit(errors.New("rank 3 has died"), 3)
	next := newFake(0, 3)
	next.epoch = 2
	b.Enter(next.place())
	s := b.State()
	if len(s.Gone) != 1 || s.Gone[0].Rank != 3 || s.Gone[0].Peer != peerName(1)(3) || s.World.Epoch != 2 || s.lost != 1 {
		t.Errorf("%+v, %+v", s.Gone, s.World)
	}
	w.epoch = 3
	b.Enter(w.place()) // it is back
	if s := b.State(); len(s.Gone) != 0 || s.worlds != 3 {
		t.Errorf("%+v after %d worlds", s.Gone, s.worlds)
	}
	for range 2 * maxEvents {
		b.Note("note", "%s", strings.Repeat("x", 2*maxText))
	}
	if events := b.State().Events; len(events) != maxEvents || len(events[0].Text) > maxText+3 {
		t.Errorf("%d events of %d bytes", len(events), len(events[0].Text))
	}
}

func TestTraining(t *testing.T) {
	b, _, clock := clocked(2)
	b.Began("convnet", 2, 100)
	for step := 1; step <= 50; step++ {
		*clock = clock.Add(100 * time.Millisecond)
		b.Step(1, step, 20, 1/float64(step))
	}
	b.Epoch(1, 50, 0.1)
	train := b.State().Train
	if math.Abs(float64(train.Rate)-200) > 1 || math.Abs(train.Left-5) > 0.2 || train.Step != 50 || train.Accuracy != nil {
		t.Errorf("%+v", train)
	}
	b.Tested(100, 0.97)
	b.Done()
	s := b.State()
	if *s.Train.Accuracy != 0.97 || !s.Train.Done || s.Train.Left != 0 || s.samples != 1000 || len(s.Curves.Loss.Points) != 50 {
		t.Errorf("%+v, %d samples", s.Train, s.samples)
	}
	if b.BytesPerSecond() == 0 || New(Config{}).BytesPerSecond() != 0 {
		t.Errorf("%v bytes a second", b.BytesPerSecond())
	}
}
