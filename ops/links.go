package ops

import (
	"hash/fnv"
	"runtime"
	"slices"
	"sync"
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
	hosts []int64 // of each rank, a number for its host: 0 for one that is not known

	shares []float64 // by rank; nil if no host is known
}

// newMeasured makes links of the figures that ranks have given, within bounds.
func newMeasured(n int, table []int64) *measured {
	m := &measured{n: n, table: slices.Clone(table), hosts: make([]int64, n)}
	for r := range m.hosts {
		m.hosts[r] = table[m.at(r, r)]
	}
	m.shares = sharesOf(n, m.Host, func(rank int) (int, int) { return takeCores(table[m.at(rank, rank)+1]) })
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

// Host numbers the host that a rank said it is on.
func (m *measured) Host(rank int) int64 { return m.hosts[rank] }

// Share is of a host's processors, as its ranks have counted them.
func (m *measured) Share(rank int) float64 {
	if m.shares == nil {
		return 1
	}
	return m.shares[rank]
}

// setAt is where the number of a rank's set of processors begins, in what it says of itself.
const setAt = 32

// processorsOf is how many processors this rank may use, and a number for which: what its
// transport knows, by a method Processors() (n, set int), if it has one.
func processorsOf(t Transport) (n, set int) {
	if p, ok := t.(interface{ Processors() (n, set int) }); ok {
		return p.Processors()
	}
	return runtime.NumCPU(), 0
}

// sayCores is what a rank says of these.
func sayCores(t Transport) int64 {
	n, set := processorsOf(t)
	return int64(n) | int64(set)<<setAt
}

// takeCores is what a rank has said, within bounds.
func takeCores(said int64) (n, set int) {
	return int(min(max(said, 0)&(1<<setAt-1), maxCores)), int(max(said, 0) >> setAt)
}

// Located is what Links are as well when they know which ranks share a host: those of one
// number, but for 0, which is of ranks that nothing is known of. It is the same on every
// rank. Links that are not Located show hosts by their latencies.
type Located interface {
	schedule.Links
	Host(rank int) int64
}

// hostName is what a transport calls the host that this rank is on, alike on all ranks
// there, or nothing. That is what a method Host says, if it has one.
func hostName(t Transport) string {
	if h, ok := t.(interface{ Host() string }); ok {
		return h.Host()
	}
	return ""
}

// hostNumber is a name as a number, which fits among figures.
func hostNumber(name string) int64 {
	if name == "" {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(name)) // a Hash's Write does not fail
	return max(int64(h.Sum64()>>1), 1)
}

// islands are groups of ranks that are near each other: on one host, if the links know;
// or as their latencies show; or else, where all are about as near and so not apart,
// neighbours by rank, about as many in a group as there are groups. Near is up to twice
// the shortest latency, or by way of others.
func islands(n int, l schedule.Links) (groups [][]int, apart bool) {
	if groups := hosts(n, l); len(groups) > 1 && len(groups) < n {
		return groups, true
	}
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
	if groups = grouped(head); len(groups) > 1 && len(groups) < n {
		return groups, true
	}
	size := 1
	for size*size < n {
		size *= 2
	}
	for r := range head {
		head[r] = r - r%size
	}
	return grouped(head), false
}

// near are the islands of some ranks.
type near func() (groups [][]int, apart bool)

// nearby looks for islands once, and only if they are asked for: every pair is looked at.
func nearby(n int, l schedule.Links) near {
	return sync.OnceValues(func() ([][]int, bool) { return islands(n, l) })
}

// hosts are the ranks of each host, if the links know. Ranks of which nothing is known are
// alone.
func hosts(n int, l schedule.Links) [][]int {
	known, ok := l.(Located)
	if !ok {
		return nil
	}
	first := make(map[int64]int)
	head := make([]int, n)
	for r := range head {
		head[r] = r
		if h := known.Host(r); h != 0 {
			if _, seen := first[h]; !seen {
				first[h] = r
			}
			head[r] = first[h]
		}
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
