package ops

import (
	"fmt"
	"testing"
	"time"

	"peermesh/ops/schedule"
)

// islets are links between sites of two ranks each.
type islets struct{ near, far schedule.Uniform }

func (i islets) between(a, b int) schedule.Uniform {
	if a/2 == b/2 {
		return i.near
	}
	return i.far
}
func (i islets) Latency(a, b int) time.Duration { return i.between(a, b).Delay }
func (i islets) Rate(a, b int) float64          { return i.between(a, b).BytesPerSecond }

var priceLinks = []schedule.Links{
	DefaultLinks,
	schedule.Uniform{Delay: 20 * time.Millisecond, BytesPerSecond: 25e6},
	schedule.Uniform{Delay: time.Second, BytesPerSecond: 1e12},
	schedule.Uniform{Delay: 0, BytesPerSecond: 1e9},
	schedule.Uniform{Delay: time.Millisecond, BytesPerSecond: 0},
	islets{schedule.Uniform{Delay: 10 * time.Microsecond, BytesPerSecond: 4e9}, schedule.Uniform{Delay: 20 * time.Millisecond, BytesPerSecond: 25e6}},
}

// What is not built because it would take too many rounds is not what would be chosen.
func TestCheapestIsFirst(t *testing.T) {
	for i, l := range priceLinks {
		for _, n := range []int{1, 2, 3, 6, 8, 13} {
			for _, k := range kinds() {
				for _, bytes := range []int64{1, 1 << 14, 1 << 20, 1 << 26} {
					var usable []rule
					for _, r := range rules[k] {
						if r.allows(n) {
							usable = append(usable, r)
						}
					}
					got, all := cheapest(usable, n, 0, bytes, l, nearby(n, l)), priced(usable, n, 0, bytes, l)
					if p := newPricer(n, bytes, l); p.price(got) != all[0].Price {
						t.Errorf("links %d, %v of %d bytes among %d: %s at %v, but %s at %v", i, k, bytes, n,
							got.Name, p.price(got), all[0].Schedule.Name, all[0].Price)
					}
				}
			}
		}
	}
}

// To turn to another peer costs up to two round trips, less for few bytes, and nothing on near
// links or where a rank keeps its peer.
func TestTurns(t *testing.T) {
	far := schedule.Uniform{Delay: 20 * time.Millisecond, BytesPerSecond: 25e6}
	near := schedule.Uniform{Delay: time.Millisecond, BytesPerSecond: 25e6}
	for _, c := range []struct {
		s     schedule.Schedule
		bytes int64
		l     schedule.Links
		turns time.Duration
	}{
		{schedule.AllReduce(schedule.Ring(4)), 64 << 20, far, 80 * time.Millisecond},
		{schedule.Ring(4), 64 << 20, far, 0},
		{schedule.Cycle(4), 64 << 20, far, 0},
		{schedule.AllReduce(schedule.Halving(4)), 64 << 20, far, 2 * 80 * time.Millisecond},
		{schedule.AllReduce(schedule.Halving(4)), 4 << 20, far, (5242880 + 10485760) * time.Nanosecond}, // of 1 and 2 MiB
		{schedule.AllReduce(schedule.Halving(4)), 64 << 20, near, 0},
	} {
		messages := 0
		for _, r := range c.s.Local(0) {
			messages += len(r)
		}
		plain := schedule.Price(c.s, int(c.bytes), c.l) + time.Duration(messages)*messageCost
		if got := newPricer(4, c.bytes, c.l).price(c.s) - plain; got != c.turns {
			t.Errorf("%s of %d bytes: %v for its turns, want %v", c.s.Name, c.bytes, got, c.turns)
		}
	}
}

// Among four hosts on a long link a cycle is taken for many bytes, as it keeps its peers.
func TestCycleOnLongLinks(t *testing.T) {
	var p plans
	p.init(4, 0, Config{Links: priceLinks[1]})
	for bytes, want := range map[int64]string{1 << 10: "one-shot", 1 << 20: "direct", 64 << 20: "cycle"} {
		if got, err := p.choose(KindAllReduce, 0, bytes); err != nil || got.name != want {
			t.Errorf("%d bytes: %s, want %s (%v)", bytes, got.name, want, err)
		}
	}
}

// What the first call of an operation among many ranks takes.
func BenchmarkChoose(b *testing.B) {
	for _, n := range []int{8, 64} {
		for _, k := range []Kind{KindAllReduce, KindBroadcast, KindAllToAll} {
			b.Run(fmt.Sprintf("%v/ranks=%d", k, n), func(b *testing.B) {
				for b.Loop() {
					var p plans
					p.init(n, 0, Config{Links: DefaultLinks})
					if _, err := p.choose(k, 0, 1<<20); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
