package planet

import "time"

// earth has round trips in milliseconds between eight regions of a public cloud, each
// with those before it, and inside each. They are medians of measurements, rounded:
// those that cloudping.co publishes for Amazon's regions, as of 2025.
var earth = []struct {
	name string
	rtt  []int
}{
	{"virginia", []int{3}},
	{"oregon", []int{64, 3}},
	{"sao-paulo", []int{115, 175, 3}},
	{"ireland", []int{70, 118, 178, 3}},
	{"frankfurt", []int{93, 143, 205, 27, 3}},
	{"mumbai", []int{192, 222, 302, 126, 129, 3}},
	{"singapore", []int{220, 160, 328, 179, 160, 64, 3}},
	{"tokyo", []int{150, 98, 259, 202, 227, 134, 71, 3}},
}

// earthRate is a gigabit per second: what a rented machine's port sustains.
const earthRate = 125e6

// Earth is eight regions on five continents, with ports of 1 Gbit/s.
func Earth() *Map {
	m := &Map{Rate: earthRate}
	for i, region := range earth {
		m.Names = append(m.Names, region.name)
		m.RTT = append(m.RTT, make([]time.Duration, len(earth)))
		for j, ms := range region.rtt {
			m.RTT[i][j] = time.Duration(ms) * time.Millisecond
			m.RTT[j][i] = m.RTT[i][j]
		}
	}
	return m
}
