package simlink

import (
	"math"
	"testing"
	"time"
)

// Bits flow through a pipe at its rate, one packet after the other, and never leave
// before they have come.
func TestPipe(t *testing.T) {
	const ms = time.Millisecond
	type pass struct {
		first, last       time.Duration // when the packet's bits come
		size              int
		wantFirst, wantOf time.Duration // when they leave
	}
	for name, c := range map[string]struct {
		rate   float64
		passes []pass
	}{
		"without bound":       {0, []pass{{1 * ms, 3 * ms, 1 << 20, 1 * ms, 3 * ms}, {2 * ms, 2 * ms, 9, 3 * ms, 3 * ms}}},
		"one after the other": {1e6, []pass{{0, 0, 1000, 0, 1 * ms}, {0, 0, 500, 1 * ms, 1500 * time.Microsecond}}},
		"after a rest":        {1e6, []pass{{0, 0, 1000, 0, 1 * ms}, {5 * ms, 5 * ms, 1000, 5 * ms, 6 * ms}}},
		"no faster than they come": {
			1e6, []pass{{0, 10 * ms, 1000, 0, 10 * ms}, {10 * ms, 10 * ms, 1000, 10 * ms, 11 * ms}},
		},
		"slower than they come": {1e6, []pass{{0, 1 * ms, 4000, 0, 4 * ms}}},
	} {
		p := pipe{rate: c.rate}
		for i, x := range c.passes {
			if first, last := p.pass(x.first, x.last, x.size); first != x.wantFirst || last != x.wantOf {
				t.Errorf("%s, packet %d: leaves from %v to %v, want %v to %v", name, i, first, last, x.wantFirst, x.wantOf)
			}
		}
	}
}

// Jitter is within its bounds, uses them, and follows from seed, direction and place.
func TestJitterIsBounded(t *testing.T) {
	const n = 2000
	w := &way{from: &Host{index: 1}, to: &Host{index: 2}, link: Link{Latency: 10 * time.Millisecond, Jitter: 4 * time.Millisecond}}
	back := &way{from: w.to, to: w.from, link: w.link}
	least, most, other := time.Hour, time.Duration(0), 0
	for i := range uint64(n) {
		d := w.delay(7, i)
		least, most = min(least, d), max(most, d)
		if again := w.delay(7, i); again != d {
			t.Fatalf("packet %d takes %v, and %v again", i, d, again)
		}
		if w.delay(8, i) != d && back.delay(7, i) != d {
			other++
		}
	}
	if least < 10*time.Millisecond || least > 10100*time.Microsecond || most > 14*time.Millisecond || most < 13900*time.Microsecond {
		t.Errorf("%d delays are from %v to %v", n, least, most)
	}
	if other < n*99/100 {
		t.Errorf("another seed and the way back differ in %d of %d", other, n)
	}
	if w.link.Jitter = 0; w.delay(7, 3) != w.link.Latency {
		t.Errorf("without jitter: %v", w.delay(7, 3))
	}
}

// The share of packets that Loss says comes a round trip later, and no packet is sent
// for ever; a datagram is lost for good.
func TestLossShare(t *testing.T) {
	const n = 10_000
	for _, c := range []struct {
		latency, later time.Duration
		loss           float64
	}{
		{20 * time.Millisecond, 40 * time.Millisecond, 0.25},
		{time.Millisecond, RetransmitAfter, 0.02},
		{time.Millisecond, RetransmitAfter, 0},
	} {
		w := &way{from: &Host{}, to: &Host{index: 1}, link: Link{Latency: c.latency, Loss: c.loss}}
		late, lost := 0, 0
		for i := range uint64(n) {
			d := w.delay(1, i)
			if (d-c.latency)%c.later != 0 {
				t.Fatalf("packet %d takes %v: no whole number of %v more than %v", i, d, c.later, c.latency)
			}
			if d > c.latency {
				late++
			}
			if fate, gone := w.fate(1, i); gone {
				lost++
			} else if fate != c.latency {
				t.Fatalf("datagram %d takes %v", i, fate)
			}
		}
		within := 5 * math.Sqrt(n*c.loss*(1-c.loss)) // five standard deviations
		for what, got := range map[string]int{"late": late, "lost": lost} {
			if math.Abs(float64(got)-n*c.loss) > within {
				t.Errorf("%d of %d are %s, for a loss of %v", got, n, what, c.loss)
			}
		}
	}
	w := &way{from: &Host{}, to: &Host{index: 1}, link: Link{Loss: 1}}
	if d := w.delay(1, 1); d != maxResends*RetransmitAfter {
		t.Errorf("where all are lost a packet takes %v", d)
	}
}

// Events happen by time, and those of one instant as they were planned.
func TestEventsInOrder(t *testing.T) {
	var q events
	for i, at := range []time.Duration{5, 1, 3, 1, 5, 1, 0} {
		q.add(event{at: at, seq: uint64(i)})
	}
	for i, want := range []uint64{6, 1, 3, 5, 2, 0, 4} {
		if e := q.take(); e.seq != want {
			t.Errorf("event %d is number %d, want %d", i, e.seq, want)
		}
	}
}

// However events are added and taken, the next is always the first of those that wait.
func FuzzEvents(f *testing.F) {
	f.Add([]byte{3, 1, 2, 0, 0, 0})
	f.Add([]byte{9, 9, 9, 0, 5, 5, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		var q events
		var waiting []event
		for i, b := range script {
			if b > 0 {
				x := event{at: time.Duration(b), seq: uint64(i)}
				q.add(x)
				waiting = append(waiting, x)
				continue
			}
			if len(waiting) == 0 {
				continue
			}
			least := 0
			for j := range waiting {
				if waiting[j].before(&waiting[least]) {
					least = j
				}
			}
			if got := q.take(); got.seq != waiting[least].seq {
				t.Fatalf("number %d at %v came before number %d at %v", got.seq, got.at, waiting[least].seq, waiting[least].at)
			}
			waiting = append(waiting[:least], waiting[least+1:]...)
		}
		if len(q) != len(waiting) {
			t.Fatalf("%d wait, want %d", len(q), len(waiting))
		}
	})
}

// A slot is the next instant at a place in its tick, now if now is one.
func TestSlot(t *testing.T) {
	for _, c := range []struct{ at, place, want time.Duration }{
		{0, 0, 0}, {1, 0, 1000}, {0, 7, 7}, {7, 7, 7}, {8, 7, 1007}, {1999, 500, 2500}, {2500, 500, 2500},
	} {
		if got := slot(c.at, c.place); got != c.want {
			t.Errorf("slot(%d, %d) is %d, want %d", c.at, c.place, got, c.want)
		}
	}
	taken := make(map[time.Duration]int)
	for i := range int(tick) - 2 {
		place := (&Host{index: i}).place()
		if taken[place]++; taken[place] > 1 || place <= 0 || place >= tick || place == flushing {
			t.Fatalf("host %d lands at %d of a tick, as %d others do", i, place, taken[place]-1)
		}
	}
}
