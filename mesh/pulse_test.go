package mesh

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// beats feeds a pulse what a link with these round trips does.
func beats(n int, rtt, jitter time.Duration) *pulse {
	rng := rand.New(rand.NewPCG(1, 1))
	p := &pulse{}
	for range n {
		d := rtt + time.Duration(rng.Int64N(int64(jitter)+1))
		p.round(d)
		p.gap(beatEvery+time.Duration(rng.Int64N(int64(jitter)+1)), beatEvery)
	}
	return p
}

// The bound is under two seconds on a near network, follows the round trip on a far
// one, and never falls to where a late beat would cost a world.
func TestPulse(t *testing.T) {
	for _, c := range []struct {
		name        string
		rtt, jitter time.Duration
		least, most time.Duration
	}{
		{"before the first beat", 0, 0, quietFloor, quietFloor},
		{"one machine", 200 * time.Microsecond, 100 * time.Microsecond, quietFloor, 2 * time.Second},
		{"a near network", 2 * time.Millisecond, 10 * time.Millisecond, quietFloor, 2 * time.Second},
		{"an ocean", 200 * time.Millisecond, 50 * time.Millisecond, 1800 * time.Millisecond, 3 * time.Second},
		{"a satellite", 700 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second},
		{"hopeless", time.Minute, time.Minute, quietMost, quietMost},
	} {
		if got := beats(200, c.rtt, c.jitter).bound(); got < c.least || got > c.most {
			t.Errorf("%s: %s, want %s to %s", c.name, got, c.least, c.most)
		}
	}
	p := beats(100, time.Millisecond, time.Millisecond)
	calm := p.bound()
	p.gap(time.Second+beatEvery, beatEvery) // once late
	if got := p.bound(); got < calm+3*time.Second {
		t.Errorf("after a beat that was a second late: %s", got)
	}
	for range 200 {
		p.gap(beatEvery, beatEvery)
	}
	if got := p.bound(); got > calm+100*time.Millisecond {
		t.Errorf("long after it: %s", got)
	}
}

// A beat tells the round trip to the side that gets the echo; one that lies about it
// moves the bound no further than its limit.
func TestBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const way = 2 * time.Millisecond
		r := newRoster("m", 1, digest{}, []peer.ID{"a", "b"})
		p := &proposal{roster: r, members: []*announcement{said("a", 0, 1), said("b", 0, 1)}}
		l, k := newWorld(nil, Config{}, p, "a").links[1], newWorld(nil, Config{}, p, "b").links[0]
		l.w.start, k.w.start = l.w.start.Add(-time.Hour), k.w.start.Add(-time.Minute)
		for range 3 {
			for _, side := range [][2]*link{{l, k}, {k, l}} {
				beat := side[0].beatFrame()[controlHead:]
				time.Sleep(way)
				if err := side[1].frame(frameBeat, beat); err != nil {
					t.Fatal(err)
				}
			}
		}
		if l.pulse.rtt != 2*way || k.pulse.rtt != 2*way {
			t.Errorf("round trips %s and %s, want %s", l.pulse.rtt, k.pulse.rtt, 2*way)
		}
		for _, lie := range [][]byte{make([]byte, beatSize), {0: 255, 7: 255, 8: 255, 15: 255, 19: 255}, {8: 1, 19: 0}} {
			if err := l.frame(frameBeat, lie); err != nil || l.pulse.bound() > quietMost {
				t.Errorf("%x: %s, %v", lie, l.pulse.bound(), err)
			}
		}
	})
}

// Many ranks beat at half the pace, which leaves three beats in the shortest silence; one
// who asks for a short silence has its eighth in any world.
func TestBeatsOfMany(t *testing.T) {
	for _, c := range []struct {
		n       int
		silence time.Duration
		want    time.Duration
	}{{maxFull, 0, beatEvery}, {maxFull + 1, 0, beatSparse}, {maxFull, time.Hour, beatEvery}, {64, time.Hour, beatSparse}, {64, time.Second, time.Second / 8}} {
		var members []peer.ID
		p := &proposal{}
		for i := range c.n {
			id := peer.ID(rune('a' + i))
			members = append(members, id)
			p.members = append(p.members, &announcement{ID: id})
		}
		p.roster = newRoster("m", 1, digest{}, members)
		if got := newWorld(nil, Config{Silence: c.silence}, p, members[0]).beat; got != c.want || 3*got > quietFloor {
			t.Errorf("%d ranks, silence %v: %v, want %v", c.n, c.silence, got, c.want)
		}
	}
}

// Time in which we did not run is nobody's silence.
func TestExcuse(t *testing.T) {
	r := newRoster("m", 1, digest{}, []peer.ID{"a", "b"})
	w := newWorld(nil, Config{}, &proposal{roster: r, members: []*announcement{said("a", 0, 1), said("b", 0, 1)}}, "a")
	w.start = w.start.Add(-time.Hour)
	l := w.links[1]
	l.heard.Store(int64(50 * time.Minute))
	l.excuse(4 * time.Minute)
	if got := time.Duration(l.heard.Load()); got != 54*time.Minute {
		t.Error(got)
	}
	l.excuse(time.Hour)
	if got := time.Duration(l.heard.Load()); got < 59*time.Minute || got > 61*time.Minute {
		t.Error(got)
	}
}

// Time in which we did not run is not waited either, up to a bound.
func TestWithin(t *testing.T) {
	for stolen, want := range map[time.Duration]time.Duration{0: 5 * time.Second, 3 * time.Second: 8 * time.Second, time.Hour: paceMost} {
		synctest.Test(t, func(t *testing.T) {
			r := newRoster("m", 1, digest{}, []peer.ID{"a", "b"})
			w := newWorld(nil, Config{}, &proposal{roster: r, members: []*announcement{said("a", 0, 1), said("b", 0, 1)}}, "a")
			time.Sleep(time.Minute) // the world is older than the wait
			w.stolen.Store(int64(time.Second))
			begin := time.Now()
			ctx, cancel := w.within(5 * time.Second)
			defer cancel()
			w.stolen.Add(int64(stolen))
			<-ctx.Done()
			if got := time.Since(begin); got != want {
				t.Errorf("with %s stolen it ends after %s, want %s", stolen, got, want)
			}
			ctx, cancel = w.within(time.Hour)
			cancel()
			<-ctx.Done()
			w.cancel(ErrClosed)
			w.tasks.wait()
		})
	}
}

// A machine that is too busy to be in time itself gives the others more time, for as
// long as it is, and never without bound.
func TestBusy(t *testing.T) {
	w, l := &World{}, &link{}
	calm := w.quiet(l, 0)
	busy := busier(0, 300*time.Millisecond)
	if got := w.quiet(l, busy) - calm; got != 1200*time.Millisecond {
		t.Errorf("300 ms late: %s more", got)
	}
	if got := busier(0, time.Hour); got != busiest {
		t.Errorf("after a sleep: %s", got)
	}
	for range 200 {
		busy = busier(busy, -time.Millisecond)
	}
	if got := w.quiet(l, busy) - calm; got > time.Millisecond {
		t.Errorf("calm again: %s more", got)
	}
	l.pulse.late = time.Hour
	if got := w.quiet(l, busiest); got != quietMost {
		t.Errorf("without bound: %s", got)
	}
	w.silence = time.Second
	if got := w.quiet(l, busiest); got != time.Second {
		t.Errorf("as configured: %s", got)
	}
}

func TestNeighbours(t *testing.T) {
	for _, n := range []int{1, 2, 3, 64, 65, 100, 128, 255, 256} {
		of := make([][]int, n)
		links := 0
		for r := range n {
			of[r] = neighbours(r, n)
			links += len(of[r])
			for _, s := range of[r] {
				if back := neighbours(s, n); !contains(back, r) || s == r {
					t.Fatalf("%d of %d: %d is a neighbour, but not the other way", r, n, s)
				}
			}
		}
		if n > maxFull && links > n*16 || n <= maxFull && links != n*(n-1) {
			t.Errorf("%d ranks: %d links", n, links)
		}
		for seed := range uint64(10) {
			dead := make([]bool, n)
			rng := rand.New(rand.NewPCG(seed, 1))
			for range min(10, n-1) * int(min(seed, 1)) {
				dead[rng.IntN(n)] = true
			}
			if got, want := flood(of, dead), n-count(dead); got != want {
				t.Errorf("%d ranks, %d dead: news reaches %d", n, count(dead), got)
			}
		}
	}
}

// flood counts whom news from the first living rank reaches.
func flood(of [][]int, dead []bool) int {
	seen := make([]bool, len(of))
	var next []int
	for r := range of {
		if !dead[r] {
			next, seen[r] = []int{r}, true
			break
		}
	}
	for len(next) > 0 {
		r := next[0]
		next = next[1:]
		for _, s := range of[r] {
			if !seen[s] && !dead[s] {
				seen[s] = true
				next = append(next, s)
			}
		}
	}
	return count(seen)
}

func count(all []bool) (n int) {
	for _, b := range all {
		if b {
			n++
		}
	}
	return n
}

func contains(all []int, r int) bool {
	for _, x := range all {
		if x == r {
			return true
		}
	}
	return false
}
