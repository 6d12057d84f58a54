package mesh

import (
	"math/bits"
	"testing"
)

// News of any rank reaches every other once, by a way as short as there is, and no rank
// passes on more than another.
func TestRoutes(t *testing.T) {
	for _, n := range []int{1, 2, 3, maxFull, maxFull + 1, 20, 64, 100, 255, 256, 1000, MaxWorld} {
		r := newRoutes(n)
		if len(r.steps) > 32 {
			t.Fatalf("%d ranks: %d neighbours, want a bit for each", n, len(r.steps))
		}
		for _, about := range []int{0, n / 3, n - 1} {
			far := hops(t, n, about)
			told, at := map[int]int{about: 0}, []int{about}
			for ; len(at) > 0; at = at[1:] {
				for i, step := range r.steps {
					to := (at[0] + step) % n
					if !r.on(at[0], about, i) {
						continue
					}
					if _, again := told[to]; again {
						t.Fatalf("%d ranks: %d hears twice of %d", n, to, about)
					}
					told[to] = told[at[0]] + 1
					at = append(at, to)
				}
			}
			for rank, way := range far {
				if got, ok := told[rank]; !ok || got != way {
					t.Fatalf("%d ranks: %d hears of %d after %d hops (%v), want %d", n, rank, about, got, ok, way)
				}
			}
		}
	}
}

// hops is how many it takes at least from a rank to each.
func hops(t *testing.T, n, from int) map[int]int {
	t.Helper()
	way, at := map[int]int{from: 0}, []int{from}
	for ; len(at) > 0; at = at[1:] {
		for _, to := range neighbours(at[0], n) {
			if _, known := way[to]; !known {
				way[to] = way[at[0]] + 1
				at = append(at, to)
			}
		}
	}
	if len(way) != n {
		t.Fatalf("%d ranks: %d can be reached", n, len(way))
	}
	return way
}

// In a world where all are linked nothing is passed on.
func TestRoutesOfFullWorld(t *testing.T) {
	for n := 1; n <= maxFull; n++ {
		r := newRoutes(n)
		if got := bits.OnesCount32(r.next[0]); got != n-1 {
			t.Errorf("%d ranks: own news goes to %d", n, got)
		}
		for far, next := range r.next[1:] {
			if next != 0 {
				t.Errorf("%d ranks: news from %d ranks away is passed on", n, far+1)
			}
		}
	}
}
