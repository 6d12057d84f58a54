package mesh

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

const lan, wan = 100 * time.Microsecond, 20 * time.Millisecond

// place is a rank's host and site.
type place struct{ host, site int }

// between is the true way from one place to another.
func between(a, b place) time.Duration {
	switch {
	case a.site != b.site:
		return wan * time.Duration(a.site+b.site)
	case a.host != b.host:
		return lan
	}
	return 0
}

// rowsOf are what ranks at these places find out, each about its higher neighbours, with
// up to a tenth of noise.
func rowsOf(places []place, rng *rand.Rand) [][]reading {
	rows := make([][]reading, len(places))
	for from := range places {
		for _, to := range neighbours(from, len(places)) {
			if d := between(places[from], places[to]); to > from {
				rows[from] = append(rows[from], reading{to, d + time.Duration(rng.Float64()*float64(d)/10)})
			}
		}
	}
	return rows
}

// namesOf are what hosts are called, but for those of even number, whose ranks do not know.
func namesOf(places []place) []string {
	names := make([]string, len(places))
	for r, p := range places {
		if p.host%2 == 1 || len(places) > maxFull {
			names[r] = fmt.Sprint("host", p.host)
		}
	}
	return names
}

// From readings of neighbours alone a chart has all ways about right, whatever the chance
// in them, in small worlds and in large ones.
func TestChart(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{1, 2, 5, 16, 17, 64, 200} {
		for _, spread := range []int{1, 3, 8} {
			places := make([]place, n)
			for r := range places {
				host := rng.IntN(spread)
				places[r] = place{host, 1 + host/3}
			}
			c := newChart(rowsOf(places, rng), namesOf(places))
			for a := range n {
				for b := range n {
					got, want := c.Latency(a, b), max(between(places[a], places[b]), hostLatency)
					if a != b && (got < want*7/8 || got > want*5/4) {
						t.Errorf("%d ranks on %d hosts: %d→%d is %v, want %v", n, spread, a, b, got, want)
					}
					if (c.Host(a) == c.Host(b)) != (places[a] == places[b]) {
						t.Errorf("%d ranks on %d hosts: %d and %d", n, spread, a, b)
					}
				}
			}
		}
	}
}

// Chance in the readings does not show, as long as it stays in the figures' grain.
func TestChartIsCoarse(t *testing.T) {
	for _, c := range []struct{ in, want uint64 }{
		{0, 0}, {7, 7}, {8, 8}, {9, 10}, {10, 10}, {15, 16}, {100, 96}, {105, 112}, {1000, 1024}, {1 << 40, 1 << 40},
	} {
		if got := coarse(c.in); got != c.want {
			t.Errorf("%d: %d, want %d", c.in, got, c.want)
		}
	}
	quiet := newChart([][]reading{{{1, 19900 * time.Microsecond}}, nil}, nil)
	noisy := newChart([][]reading{{{1, 20400 * time.Microsecond}}, nil}, nil)
	if a, b := quiet.Latency(0, 1), noisy.Latency(1, 0); a != b {
		t.Errorf("%v and %v", a, b)
	}
}

// Bursts go round hosts and sites, so that a host sends and receives one of a kind; and a
// slow end makes only its own ways slow.
func TestBursts(t *testing.T) {
	// Two sites of two hosts each, and a third of one.
	places := []place{{0, 1}, {2, 2}, {0, 1}, {1, 1}, {3, 2}, {4, 3}, {3, 2}}
	c := newChart(rowsOf(places, rand.New(rand.NewPCG(1, 1))), nil)
	if got, want := fmt.Sprint(c.bursts()), "[{0 3 false} {3 0 false} {1 4 false} {4 1 false} {0 1 true} {1 5 true} {5 0 true}]"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	if c.Rate(0, 3) != nearRate || c.Rate(0, 5) != farRate || c.Rate(0, 2) != hostRate {
		t.Errorf("before any burst: %v, %v, %v", c.Rate(0, 3), c.Rate(0, 5), c.Rate(0, 2))
	}
	const fast, slow = 1 << 24, 1 << 20
	for _, b := range c.bursts() {
		switch {
		case b.to == 5 || b.from == 5:
			c.rate(b, slow)
		case b.from == 3:
			c.rate(b, 0) // it broke off
		default:
			c.rate(b, fast)
		}
	}
	for _, x := range []struct {
		from, to int
		want     float64
	}{{2, 3, fast}, {4, 1, fast}, {6, 4, hostRate}, {3, 6, fast}, {3, 5, slow}, {5, 1, slow}} {
		if got := c.Rate(x.from, x.to); got != x.want {
			t.Errorf("%d→%d: %v, want %v", x.from, x.to, got, x.want)
		}
	}
}

// Ranks of which nobody has found anything are alone, far away.
func TestChartOfNothing(t *testing.T) {
	c := newChart(make([][]reading, 3), nil)
	if c.Latency(0, 2) != farUnknown || c.Rate(0, 2) != farRate || c.Host(1) != 2 || len(c.bursts()) != 3 {
		t.Errorf("%v, %v, %v, %v", c.Latency(0, 2), c.Rate(0, 2), c.Host(1), c.bursts())
	}
}
