package planet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"peermesh/ops/schedule"
)

// Bounds of a Map and of its worlds.
const (
	MaxRegions = 64
	MaxRanks   = 1 << 20
)

// A Map is regions and how far they are from each other.
type Map struct {
	Names []string
	// RTT is the round trip between two regions, and inside one on the diagonal. It is
	// symmetric.
	RTT [][]time.Duration
	// Rate is what every rank sends, and receives at the same time, in bytes per second.
	Rate float64
}

// Check says what is wrong with a map.
func (m *Map) Check() error {
	n := len(m.Names)
	if n < 1 || n > MaxRegions {
		return fmt.Errorf("planet: %d regions: want 1 to %d", n, MaxRegions)
	}
	if !(m.Rate > 0) {
		return fmt.Errorf("planet: a rate of %v bytes per second", m.Rate)
	}
	if len(m.RTT) != n {
		return errors.New("planet: not as many rows of round trips as regions")
	}
	for i, row := range m.RTT {
		if len(row) != n {
			return fmt.Errorf("planet: %s has %d round trips, want %d", m.Names[i], len(row), n)
		}
		for j, d := range row {
			if d < 0 || d != m.RTT[j][i] {
				return fmt.Errorf("planet: the round trip between %s and %s is %v one way and %v the other", m.Names[i], m.Names[j], d, m.RTT[j][i])
			}
		}
	}
	return nil
}

// A World is some ranks on a map: schedule.Links for Price.
type World struct {
	*Map
	Ranks   int
	Regions [][]int // ranks by region, in ascending order
	region  []uint8 // by rank
	oneWay  [][]time.Duration
}

var _ schedule.Links = (*World)(nil)

// World spreads ranks evenly over the regions, and at random, the same every time: ranks
// are the order of hashes. It panics unless there are 1 to MaxRanks.
func (m *Map) World(ranks int) *World {
	if ranks < 1 || ranks > MaxRanks {
		panic(fmt.Sprintf("planet: a world of %d: want 1 to %d ranks", ranks, MaxRanks))
	}
	w := &World{Map: m, Ranks: ranks, Regions: make([][]int, len(m.Names)), region: make([]uint8, ranks)}
	for r, at := range rand.New(rand.NewPCG(1, uint64(ranks))).Perm(ranks) {
		w.region[r] = uint8(at % len(m.Names))
		w.Regions[w.region[r]] = append(w.Regions[w.region[r]], r)
	}
	w.Regions = slices.DeleteFunc(w.Regions, func(ranks []int) bool { return len(ranks) == 0 })
	for _, row := range m.RTT {
		half := slices.Clone(row)
		for i := range half {
			half[i] /= 2
		}
		w.oneWay = append(w.oneWay, half)
	}
	return w
}

// Latency is half the round trip between the ranks' regions.
func (w *World) Latency(from, to int) time.Duration {
	return w.oneWay[w.region[from]][w.region[to]]
}

// Rate is that of every port.
func (w *World) Rate(from, to int) float64 { return w.Map.Rate }

// ByRegion lists the ranks region by region.
func (w *World) ByRegion() []int { return slices.Concat(w.Regions...) }

// Bound is the least time that any all_reduce of some bytes can take: news has to get
// from every rank to every other, and every rank to send 2(n−1)/n of the bytes (Patarasuk
// and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009).
func (w *World) Bound(bytes int) time.Duration {
	var far time.Duration
	for i, some := range w.Regions {
		for j, others := range w.Regions {
			if i != j || len(some) > 1 {
				far = max(far, w.Latency(some[0], others[len(others)-1]))
			}
		}
	}
	share := 2 * float64(w.Ranks-1) / float64(w.Ranks)
	return max(far, time.Duration(share*float64(bytes)/w.Map.Rate*1e9))
}
