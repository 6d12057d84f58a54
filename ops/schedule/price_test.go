package schedule

import (
	"math"
	"testing"
	"time"
)

const second = float64(time.Second)

// The closed forms of the papers, α the latency, β the time of one byte:
// exact up to the nanosecond that each round may round away.
func TestPriceClosedForms(t *testing.T) {
	const bytes = 64 << 20
	l := Uniform{Delay: 3 * time.Millisecond, BytesPerSecond: 1e8}
	alpha, whole := float64(l.Delay), bytes/l.BytesPerSecond*second
	for n := 1; n <= most; n++ {
		k, share, lg := float64(n), float64(n-1)/float64(n), float64(ceilLog(n))
		type closed struct {
			s    Schedule
			want float64
		}
		cases := []closed{
			{Ring(n), (k-1)*alpha + share*whole},
			{Ring(n).Reverse(), (k-1)*alpha + share*whole},
			{AllReduce(Ring(n)), 2*(k-1)*alpha + 2*share*whole},
			{Dissemination(n), lg * (alpha + whole)},
			{Pairwise(n), float64(n/2)*alpha + share*whole},
		}
		if n&(n-1) == 0 {
			cases = append(cases,
				closed{Doubling(n), lg * (alpha + whole)},
				closed{AllReduce(Halving(n)), 2*lg*alpha + 2*share*whole},
				closed{Binomial(n), lg * (alpha + whole)},
				closed{Binomial(n).Reverse(), lg * (alpha + whole)},
				closed{BinomialGather(n), lg*alpha + share*whole})
		}
		for _, c := range cases {
			got := float64(Price(c.s, bytes, l))
			if math.Abs(got-c.want) > float64(2*len(c.s.Rounds)+1) {
				t.Errorf("%s of %d: %v, want %v", c.s.Name, n, time.Duration(got), time.Duration(c.want))
			}
		}
	}
}

// A barrier carries nothing and costs its latencies.
func TestPriceOfNothing(t *testing.T) {
	for _, rate := range []float64{1e6, 0, math.Inf(1)} {
		got := Price(Dissemination(9), 0, Uniform{Delay: time.Second, BytesPerSecond: rate})
		if got != 4*time.Second {
			t.Errorf("at rate %v: %v", rate, got)
		}
	}
}

// Sixteen peers across the internet (40 ms, 100 Mbit/s) and in a rack (50 µs,
// 10 Gbit/s): which all-reduce is cheapest, and what it costs.
func TestCheapest(t *testing.T) {
	wan := Uniform{40 * time.Millisecond, 12.5e6}
	lan := Uniform{50 * time.Microsecond, 1.25e9}
	for _, c := range []struct {
		n     int
		bytes int
		l     Links
		want  string
		price time.Duration
	}{
		{16, 1 << 10, wan, "doubling", 160 * time.Millisecond},
		{16, 64 << 10, wan, "doubling", 181 * time.Millisecond},
		{16, 1 << 20, wan, "all-reduce(halving)", 477 * time.Millisecond},
		{16, 256 << 20, wan, "all-reduce(halving)", 40585 * time.Millisecond},
		{16, 1 << 10, lan, "doubling", 203 * time.Microsecond},
		{16, 256 << 20, lan, "all-reduce(halving)", 403 * time.Millisecond},
		// Where the ranks are no power of two the fold costs a whole vector each
		// way, and the ring wins as soon as bytes matter more than latency.
		// (The four that neither fold nor are folded into run ahead, which saves a
		// latency of the five.)
		{12, 1 << 10, wan, "doubling", 160 * time.Millisecond},
		{12, 256 << 20, wan, "all-reduce(ring)", 40251 * time.Millisecond},
		{12, 256 << 20, lan, "all-reduce(ring)", 395 * time.Millisecond},
		{3, 256 << 20, lan, "all-reduce(ring)", 286 * time.Millisecond},
	} {
		best, price := "", Never
		for _, s := range []Schedule{
			Doubling(c.n), AllReduce(Halving(c.n)), AllReduce(Ring(c.n)), AllReduce(Binomial(c.n)),
		} {
			if p := Price(s, c.bytes, c.l); p < price {
				best, price = s.Name, p
			}
		}
		if best != c.want || (price-c.price).Abs() > c.price/100 {
			t.Errorf("%d ranks, %d bytes, %v: %s at %v, want %s at %v", c.n, c.bytes, c.l, best, price, c.want, c.price)
		}
	}
}

// sites is a network of clusters: quick within one, slow between two.
type sites struct {
	of           []int
	inside, away Uniform
}

func (s sites) between(a, b int) Uniform {
	if s.of[a] == s.of[b] {
		return s.inside
	}
	return s.away
}
func (s sites) Latency(a, b int) time.Duration { return s.between(a, b).Delay }
func (s sites) Rate(a, b int) float64          { return s.between(a, b).BytesPerSecond }

// Between sites a hierarchy wins over the ring that ignores them.
func TestHierarchyIsCheaperBetweenSites(t *testing.T) {
	l := sites{
		of:     []int{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2},
		inside: Uniform{50 * time.Microsecond, 1.25e9},
		away:   Uniform{40 * time.Millisecond, 12.5e6},
	}
	h := Hierarchical([][]int{{0, 3, 6, 9}, {1, 4, 7, 10}, {2, 5, 8, 11}}, func(n int) Schedule { return AllReduce(Ring(n)) })
	for _, bytes := range []int{1 << 10, 1 << 20, 1 << 28} {
		tree, ring := Price(h, bytes, l), Price(AllReduce(Ring(12)), bytes, l)
		if tree >= ring {
			t.Errorf("%d bytes: hierarchy %v, ring %v", bytes, tree, ring)
		}
	}
}

// One way in: a rank that hears from two at once takes twice as long. One way
// out: likewise. And a rank that has no part in a round does not wait for it.
func TestPriceSharesPorts(t *testing.T) {
	l := Uniform{Delay: time.Second, BytesPerSecond: 1}
	for _, c := range []struct {
		text string
		want time.Duration
	}{
		{"one: 3 ranks, 1 chunks\n 0 0→1 [0]", 11 * time.Second},
		{"in: 3 ranks, 2 chunks\n 0 0→2 [0] 1→2 [1]", 11 * time.Second},
		{"out: 3 ranks, 1 chunks\n 0 0→1 [0] 0→2 [0]", 21 * time.Second},
		{"both ways: 2 ranks, 1 chunks\n 0 0→1 [0] 1→0 [0]", 11 * time.Second},
		{"apart: 4 ranks, 1 chunks\n 0 0→1 [0]\n 1 2→3 [0]", 11 * time.Second},
		{"in turn: 3 ranks, 1 chunks\n 0 0→1 [0]\n 1 1→2 [0]", 22 * time.Second},
		{"a half: 2 ranks, 2 chunks\n 0 0→1 [0]", 6 * time.Second},
		{"nothing: 2 ranks, 1 chunks", 0},
	} {
		s, err := Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Price(s, 10, l); got != c.want {
			t.Errorf("%s: %v, want %v", s.Name, got, c.want)
		}
	}
}

// What a peer measured may be nonsense; a price is a duration all the same.
func TestPriceNeverOverflows(t *testing.T) {
	for _, rate := range []float64{0, -1, math.NaN(), 1e-300} {
		if got := Price(AllReduce(Ring(4)), 1<<20, Uniform{time.Second, rate}); got != Never {
			t.Errorf("at rate %v: %v", rate, got)
		}
	}
	if got := Price(Ring(4), 1, Uniform{Never, 1}); got != Never {
		t.Errorf("behind an endless latency: %v", got)
	}
	if got := Price(Ring(2), 10, Uniform{-time.Hour, 10}); got != 500*time.Millisecond {
		t.Errorf("a negative latency counts as none, got %v", got)
	}
}
