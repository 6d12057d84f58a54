package mesh

import (
	"math/bits"
	"slices"
	"time"
)

const (
	// farFrom is the way, one way, from which on a rank is at another site: half of the
	// round trip from which on node's TCP takes a link for a long one.
	farFrom = 2500 * time.Microsecond
	// hostLatency and hostRate are those between ranks of one host: nominal ones, since
	// what is measured there shows how busy the machine was rather than what it is.
	hostLatency, hostRate = 10 * time.Microsecond, 4e9
	// nearLeast is the shortest way between hosts, which sets it apart from that.
	nearLeast = 25 * time.Microsecond
	// farUnknown is the way between sites of which no two ranks have measured any.
	farUnknown = 50 * time.Millisecond
	// nearRate and farRate are in bytes per second, where no burst has come through.
	nearRate, farRate = 500e6, 12.5e6
)

// Links are what a world knows of its links, the same on every rank: the way from one
// rank to another, its bytes per second, and a number for each host, from 1.
type Links = interface {
	Latency(from, to int) time.Duration
	Rate(from, to int) float64
	Host(rank int) int64
}

// A reading is how far a rank has found another to be, one way; 0 is on the same host. That
// of a rank itself has the processors that it may use in place of microseconds.
type reading struct {
	rank    int
	latency time.Duration
}

// A chart is where the ranks of a world are: on hosts, which are at sites. It is a pure
// function of the ranks' readings and bursts. Figures of one kind of link are one figure,
// and coarse: what a single link shows is mostly chance, and would have a world choose
// other schedules each time it forms.
type chart struct {
	host, site []int // by rank: the lowest rank there
	near       []time.Duration
	far        [][]time.Duration // by site, and site; not symmetric in what is filled
	hostRate   []float64         // by host, to others at its site; 0: not known
	siteRate   []float64         // by site, to others; 0: not known
	cores      []coreSet         // by rank: the processors that it may use
}

// pairs are the readings of other ranks than the one that has them. Their number is known
// before: every rank of a world draws its chart, at one time.
func pairs(rows [][]reading) (from []int, all []reading) {
	n := 0
	for _, row := range rows {
		n += len(row)
	}
	from, all = make([]int, 0, n), make([]reading, 0, n)
	for rank, row := range rows {
		for _, r := range row {
			if r.rank != rank {
				from, all = append(from, rank), append(all, r)
			}
		}
	}
	return from, all
}

// newChart takes rows of readings, and what each rank's host is called, if that is known.
func newChart(rows [][]reading, names []string) *chart {
	n := len(rows)
	from, all := pairs(rows)
	c := &chart{
		cores: coresOf(rows), near: make([]time.Duration, n), far: make([][]time.Duration, n),
		hostRate: make([]float64, n), siteRate: make([]float64, n),
	}
	same, near := make([]edge, 0, n), make([]edge, 0, len(all)+n)
	first := make(map[string]int)
	for r, name := range names {
		if f, ok := first[name]; ok && name != "" {
			same = append(same, edge{f, r})
		} else {
			first[name] = r
		}
	}
	for i, r := range all {
		if r.latency == 0 {
			same = append(same, edge{from[i], r.rank})
		} else if r.latency < farFrom {
			near = append(near, edge{from[i], r.rank})
		}
	}
	c.host, c.site = components(n, same), components(n, append(near, same...))
	for _, s := range distinct(c.site) {
		c.far[s] = make([]time.Duration, n)
	}
	for i, r := range all {
		a, b := c.site[from[i]], c.site[r.rank]
		d := coarse(max(r.latency, nearLeast))
		switch {
		case c.host[from[i]] == c.host[r.rank]:
		case a == b:
			c.near[a] = lesser(c.near[a], d)
		default:
			c.far[a][b] = lesser(c.far[a][b], d)
			c.far[b][a] = c.far[a][b]
		}
	}
	c.bridge()
	return c
}

// bridge finds ways between sites of which no two ranks are linked, by way of others.
func (c *chart) bridge() {
	sites := distinct(c.site)
	for _, via := range sites {
		for _, a := range sites {
			for _, b := range sites {
				if d, e := c.far[a][via], c.far[via][b]; a != b && d > 0 && e > 0 {
					c.far[a][b] = lesser(c.far[a][b], d+e)
				}
			}
		}
	}
}

// lesser is the shorter of two ways, 0 being none.
func lesser(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// coarse rounds to three significant bits, by integers alone: all machines agree.
func coarse[T ~int64 | ~uint64](v T) T {
	shift := max(bits.Len64(uint64(v))-3, 0)
	return (v + 1<<shift/2) >> shift << shift
}

type edge [2]int

// components are the lowest ranks, by rank, of those that edges join.
func components(n int, edges []edge) []int {
	head := make([]int, n)
	for r := range head {
		head[r] = r
	}
	find := func(r int) int {
		for head[r] != r {
			r = head[r]
		}
		return r
	}
	for _, e := range edges {
		a, b := find(e[0]), find(e[1])
		head[max(a, b)] = min(a, b)
	}
	for r := range head {
		head[r] = find(r)
	}
	return head
}

// distinct are the values of a list, in ascending order.
func distinct(list []int) []int { return slices.Compact(slices.Sorted(slices.Values(list))) }

// A burst is bytes that one rank sends another to learn the rate between two hosts, or
// between two sites.
type burst struct {
	from, to int
	far      bool
}

// bursts are those that tell most while each host sends and receives no more than one of
// a kind: round the hosts of every site, and round the sites.
func (c *chart) bursts() (all []burst) {
	sites := distinct(c.site)
	for _, s := range sites {
		var hosts []int
		for r, h := range c.host {
			if r == h && c.site[r] == s {
				hosts = append(hosts, h)
			}
		}
		all = append(all, inTurn(hosts, false)...)
	}
	return append(all, inTurn(sites, true)...)
}

// inTurn has each of a list send to the one after it, and the last to the first.
func inTurn(list []int, far bool) (all []burst) {
	if len(list) < 2 {
		return nil
	}
	for i, from := range list {
		all = append(all, burst{from, list[(i+1)%len(list)], far})
	}
	return all
}

// rate notes what a burst has shown. Both ends are taken to be able to as much, so that a
// slow one is slow in both its bursts, and its neighbours are not in their others.
func (c *chart) rate(b burst, rate uint64) {
	rates, r := c.hostRate, float64(coarse(rate))
	if b.far {
		rates = c.siteRate
	}
	rates[b.from], rates[b.to] = max(rates[b.from], r), max(rates[b.to], r)
}

// Latency is how long the first byte takes from one rank to another.
func (c *chart) Latency(from, to int) time.Duration {
	a, b := c.site[from], c.site[to]
	switch {
	case c.host[from] == c.host[to]:
		return hostLatency
	case a == b:
		return c.near[a]
	case c.far[a][b] > 0:
		return c.far[a][b]
	}
	return farUnknown
}

// Rate is how many bytes per second go from one rank to another: as many as the slower
// of their hosts, or sites, can.
func (c *chart) Rate(from, to int) float64 {
	rates, a, b, unknown := c.siteRate, c.site[from], c.site[to], float64(farRate)
	if a == b {
		rates, a, b, unknown = c.hostRate, c.host[from], c.host[to], nearRate
	}
	switch {
	case c.host[from] == c.host[to]:
		return hostRate
	case rates[a] == 0 && rates[b] == 0:
		return unknown
	case rates[a] == 0 || rates[b] == 0:
		return max(rates[a], rates[b])
	}
	return min(rates[a], rates[b])
}

// Host numbers the host that a rank is on.
func (c *chart) Host(rank int) int64 { return int64(c.host[rank]) + 1 }
