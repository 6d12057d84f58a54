package ops

import (
	"slices"
	"time"

	"peermesh/ops/schedule"
)

const (
	// maxLatency and maxRate bound what is believed of a link.
	maxLatency = time.Hour
	maxRate    = 1e15 // bytes per second
)

// measured are links of which each was measured by the lower of its ranks.
type measured struct {
	n     int
	table []int64 // latency in ns and bytes per second, from each rank to each
}

// newMeasured makes links of the figures that ranks have given, within bounds.
func newMeasured(n int, table []int64) *measured {
	m := &measured{n, slices.Clone(table)}
	for i := 0; i < len(m.table); i += 2 {
		m.table[i] = min(max(m.table[i], 0), int64(maxLatency))
		m.table[i+1] = min(max(m.table[i+1], 1), maxRate)
	}
	return m
}

func (m *measured) at(from, to int) int { return 2 * (min(from, to)*m.n + max(from, to)) }

// Latency is half of the shortest time to and fro.
func (m *measured) Latency(from, to int) time.Duration {
	return time.Duration(m.table[m.at(from, to)])
}

// Rate is that of a burst to and fro, in bytes per second.
func (m *measured) Rate(from, to int) float64 { return float64(m.table[m.at(from, to)+1]) }

// Links are what the group prices its schedules by, by ranks of the group: Config.Links,
// or what Measure has found.
func (g *Group) Links() schedule.Links {
	g.plans.mu.Lock()
	defer g.plans.mu.Unlock()
	return g.plans.links
}

// islands are groups of ranks that are near each other, as the links show; or else,
// where all are about as near, neighbours by rank, about as many in a group as there
// are groups. Near is up to twice the shortest latency, or by way of others.
func islands(n int, l schedule.Links) [][]int {
	least := maxLatency
	for a := range n {
		for b := range a {
			least = min(least, max(l.Latency(a, b), 1))
		}
	}
	head := make([]int, n) // of each rank's island: its lowest rank
	for a := range n {
		head[a] = a
		for b := range a {
			if l.Latency(a, b) <= 2*least && head[b] != head[a] {
				merge(head[:a+1], head[a], head[b])
			}
		}
	}
	groups := grouped(head)
	if len(groups) > 1 && len(groups) < n {
		return groups
	}
	size := 1
	for size*size < n {
		size *= 2
	}
	for r := range head {
		head[r] = r - r%size
	}
	return grouped(head)
}

// merge makes one island of two.
func merge(head []int, a, b int) {
	for r, h := range head {
		if h == a || h == b {
			head[r] = min(a, b)
		}
	}
}

// grouped are the ranks that have each head.
func grouped(head []int) (groups [][]int) {
	at := make(map[int]int)
	for r, h := range head {
		if _, ok := at[h]; !ok {
			at[h] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[h]] = append(groups[at[h]], r)
	}
	return groups
}
