package ops

import (
	"runtime"
	"testing"
	"time"

	"peermesh/ops/schedule"
)

// A machine has all ranks, or hosts of so many each, and some processors on each.
type machine struct{ ranks, perHost, cores int }

func (m machine) Host(rank int) int64 { return int64(rank/m.perHost) + 1 }
func (m machine) Cores(int) int       { return m.cores }
func (m machine) Latency(a, b int) time.Duration {
	if m.Host(a) == m.Host(b) {
		return 10 * time.Microsecond // nominal, and not what is taken
	}
	return 200 * time.Microsecond
}
func (m machine) Rate(a, b int) float64 { return 1e9 }

// What is taken on one machine: with more ranks than processors few messages for few bytes
// and little copying for many; with enough processors whatever has the shortest span.
func TestChoiceOnOneMachine(t *testing.T) {
	for _, c := range []struct {
		kind         Kind
		ranks, cores int
		bytes        int64
		want         string
	}{
		{KindAllReduce, 4, 2, 8, "one-shot"},
		{KindAllReduce, 4, 2, 64 << 20, "halving"},
		{KindAllReduce, 64, 2, 8, "binomial"}, // 126 messages, not 384
		{KindBroadcast, 4, 2, 8, "binomial"},
		{KindBroadcast, 4, 2, 1 << 20, "binomial"},
		{KindBroadcast, 4, 2, 64 << 20, "tree"},
		{KindReduce, 4, 2, 1 << 20, "binomial"},
		{KindReduce, 4, 2, 64 << 20, "tree"},
		{KindReduceScatter, 4, 2, 8, "direct"},
		{KindAllGather, 4, 2, 8, "direct"},
		{KindAllGather, 4, 2, 1 << 20, "direct"},
		{KindGather, 4, 2, 1 << 20, "direct"},
		{KindScatter, 4, 2, 64 << 20, "direct"},
		{KindAllToAll, 4, 2, 1 << 20, "direct"},
		{KindAllReduce, 2, 2, 8, "doubling"},
		{KindAllReduce, 2, 2, 1 << 20, "doubling"},
		{KindBroadcast, 8, 8, 8, "binomial"},
		{KindBroadcast, 8, 8, 1 << 20, "tree"},
	} {
		m := machine{c.ranks, c.ranks, c.cores}
		var p plans
		p.init(c.ranks, 0, Config{Links: survey(c.ranks, m)})
		if got, err := p.choose(c.kind, 0, c.bytes); err != nil || got.name != c.want {
			t.Errorf("%v of %d bytes among %d ranks on %d processors: %s, want %s (%v)",
				c.kind, c.bytes, c.ranks, c.cores, got.name, c.want, err)
		}
	}
}

// The price on a machine, by hand.
func TestPriceOnOneMachine(t *testing.T) {
	const copying = 125 * time.Microsecond // of 1 MB
	for _, c := range []struct {
		s     schedule.Schedule
		cores int
		want  time.Duration
	}{
		// Span: two messages down. Work: three messages, at two ends each.
		{schedule.BinomialTo(4, 0).Reverse(), 2, 2*(handOver+copying+yielding) + 3*(copying+yielding)},
		{schedule.BinomialTo(4, 0).Reverse(), 1, 2*(handOver+copying+yielding) + 6*(copying+yielding)},
		{schedule.BinomialTo(4, 0).Reverse(), 4, 2*(atOnce+copying) + 2*atOnce},
		// One message each way at once, and twice the work for each of two ranks.
		{schedule.Doubling(2), 2, 2 * (copying + atOnce)},
		{schedule.Doubling(2), 1, handOver + copying + 2*yielding + 4*(copying+yielding)},
		{schedule.Dissemination(1), 1, 0},
		// Two thirds of a chunk out and in, and what comes in is held.
		{schedule.Direct(3), 1, handOver + 2*(copying/3) + 4*yielding + 3*(6*(copying/3)+4*yielding)},
	} {
		m := machine{c.s.Ranks, c.s.Ranks, c.cores}
		if got := newPricer(c.s.Ranks, 1e6, survey(c.s.Ranks, m)).price(c.s); got != c.want {
			t.Errorf("%s on %d processors: %v, want %v", c.s.Name, c.cores, got, c.want)
		}
	}
}

// What crosses between hosts is no work of their processors, and hosts work side by side.
func TestPriceOnHosts(t *testing.T) {
	l := survey(4, machine{4, 2, 1})
	price := func(s schedule.Schedule) time.Duration { return newPricer(4, 1e6, l).price(s) }
	far := schedule.Schedule{Ranks: 4, Chunks: 1, Rounds: []schedule.Round{{{From: 0, To: 2, N: 1}}}}
	if got, want := price(far), 200*time.Microsecond+time.Millisecond+messageCost; got != want {
		t.Errorf("between hosts: %v, want %v", got, want)
	}
	one := schedule.Schedule{Ranks: 4, Chunks: 1, Rounds: []schedule.Round{{{From: 0, To: 1, N: 1}}}}
	both := one.With(schedule.Schedule{Ranks: 4, Chunks: 1, Rounds: []schedule.Round{{{From: 2, To: 3, N: 1}}}})
	if price(one) != price(both) {
		t.Errorf("on one host %v, on both %v", price(one), price(both))
	}
}

// Shares are of what a host's ranks may use at most, and nobody's word is believed far.
func TestShares(t *testing.T) {
	hosts, cores := []int64{1, 2, 1, 0, 2, 1}, []int{2, 8, 1, 3, 8, 0}
	got := sharesOf(6, func(r int) int64 { return hosts[r] }, func(r int) (int, int) { return cores[r], 0 })
	for r, want := range []float64{2.0 / 3, 4, 2.0 / 3, 1, 4, 2.0 / 3} {
		if got[r] != want {
			t.Errorf("rank %d: %v, want %v", r, got[r], want)
		}
	}
	if got := sharesOf(2, func(int) int64 { return 1 }, func(int) (int, int) { return 0, 5 }); got != nil {
		t.Errorf("nothing is known, but %v", got)
	}
	table := make([]int64, 8) // two ranks on host 7, of three and of too many processors
	m := newMeasured(2, table)
	if m.Share(0) != 1 {
		t.Errorf("share %v of an unknown host", m.Share(0))
	}
	table[0], table[6], table[7] = 7, 7, 1<<31
	if m = newMeasured(2, table); m.Share(1) != maxCores/2 {
		t.Errorf("share %v", m.Share(1))
	}
	table[1], table[7] = 1, -5
	if m = newMeasured(2, table); m.Share(1) != 0.5 {
		t.Errorf("share %v of one processor", m.Share(1))
	}
	table[1], table[7] = 1|3<<setAt, 1|4<<setAt
	if m = newMeasured(2, table); m.Share(0) != 1 || m.Share(1) != 1 {
		t.Errorf("shares %v and %v of a processor each", m.Share(0), m.Share(1))
	}
}

// Inside a host lanes are for processors that would have nothing to do else; a schedule
// that goes between hosts has as many as if there were none.
func TestLanesOnOneMachine(t *testing.T) {
	for _, c := range []struct {
		m    machine
		want int
	}{
		{machine{4, 4, 2}, 1},
		{machine{4, 4, 4}, 1},
		{machine{4, 4, 15}, 3},
		{machine{4, 4, 64}, autoLanes},
		{machine{4, 4, 0}, 1}, // nobody knows
		{machine{4, 2, 2}, autoLanes},
		{machine{4, 1, 2}, autoLanes},
	} {
		if got := lanesFor(schedule.Ring(4), 64<<20, survey(4, c.m)); got != c.want {
			t.Errorf("%+v: %d lanes, want %d", c.m, got, c.want)
		}
	}
	if got := lanesFor(schedule.Ring(4), 1<<20, survey(4, machine{4, 4, 64})); got != 1 {
		t.Errorf("%d lanes for little", got)
	}
}

// A bound4 is a machine on which ranks are bound to processors.
type bound4 struct {
	machine
	set []int
}

func (b bound4) CoreSet(rank int) int { return b.set[rank] }

// Ranks that are bound to a processor each have it to themselves, and their schedules are
// those of ranks with room; those that are bound to one and the same share that.
func TestBoundRanks(t *testing.T) {
	for _, c := range []struct {
		name  string
		cores int
		set   []int
		want  float64
	}{
		{"to one each", 1, []int{1, 2, 3, 4}, 1},
		{"to two, two by two", 2, []int{1, 1, 2, 2}, 1},
		{"to one, two by two", 1, []int{1, 1, 2, 2}, 0.5},
		{"all to two", 2, []int{9, 9, 9, 9}, 0.5},
		{"nobody says to which", 1, []int{0, 0, 0, 0}, 0.25},
	} {
		l := survey(4, bound4{machine{4, 4, c.cores}, c.set})
		for r := range 4 {
			if got := l.Share(r); got != c.want {
				t.Errorf("%s: rank %d has %v of a processor, want %v", c.name, r, got, c.want)
			}
		}
		way := handOver
		if c.want == 1 {
			way = atOnce
		}
		if got := l.Latency(0, 3); got != way {
			t.Errorf("%s: latency %v, want %v", c.name, got, way)
		}
	}
}

// What a rank says of its processors is what its transport says, in a group too.
func TestSayCores(t *testing.T) {
	if n, set := takeCores(sayCores(knowing{})); n != 3 || set != 77 {
		t.Errorf("%d of set %d", n, set)
	}
	if n, set := takeCores(sayCores(among(knowing{}, []int{0, 1}))); n != 3 || set != 77 {
		t.Errorf("in a group: %d of set %d", n, set)
	}
	var silent struct{ Transport }
	if n, set := takeCores(sayCores(silent)); n != runtime.NumCPU() || set != 0 {
		t.Errorf("by itself: %d of set %d", n, set)
	}
	if n, set := takeCores(-1); n != 0 || set != 0 {
		t.Errorf("less than nothing is %d of set %d", n, set)
	}
}

// Knowing is a transport that knows which processors its rank may use.
type knowing struct{ Transport }

func (knowing) Rank() int                { return 0 }
func (knowing) Processors() (n, set int) { return 3, 77 }

// A group of some ranks takes the others of its hosts to be at work, too.
func TestShareInGroups(t *testing.T) {
	l := linksAmong{survey(4, machine{4, 4, 2}), ranks{n: 2, list: []int{1, 3}}}
	if l.Share(1) != 0.5 || l.Latency(0, 1) != handOver || l.Rate(1, 0) != copyRate {
		t.Errorf("share %v, %v, %v", l.Share(1), l.Latency(0, 1), l.Rate(1, 0))
	}
	if (linksAmong{DefaultLinks, ranks{n: 2}}).Share(0) != 1 {
		t.Error("a share of unknown processors")
	}
}
