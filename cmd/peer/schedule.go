package main

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"peermesh/ops/schedule"
)

// maxPrinted bounds the ranks of a printed schedule: a ring's text grows with
// their square.
const maxPrinted = 256

// A scheduleCmd prints one schedule and the prices of all its rivals.
type scheduleCmd struct {
	Kind      string        `arg:"" enum:"all-reduce,reduce-scatter,all-gather,broadcast,reduce,barrier" help:"all-reduce, reduce-scatter, all-gather, broadcast, reduce or barrier."`
	Ranks     int           `short:"n" default:"4" placeholder:"N" help:"Ranks of the world."`
	Bytes     size          `default:"1MiB" placeholder:"SIZE" help:"Size of the vector, as 4096, 64KiB or 1.5MiB."`
	Algorithm string        `placeholder:"NAME" help:"Print this one rather than the cheapest."`
	Latency   time.Duration `default:"100us" placeholder:"TIME" help:"Latency of a link."`
	Rate      size          `default:"500MB" placeholder:"SIZE" help:"Bytes that a link carries a second."`
}

// Validate bounds what is built.
func (s *scheduleCmd) Validate() error {
	switch {
	case s.Ranks < 1 || s.Ranks > maxPrinted:
		return fmt.Errorf("--ranks is %d, want 1 to %d", s.Ranks, maxPrinted)
	case s.Rate < 1:
		return fmt.Errorf("--rate is %d, want at least one byte a second", s.Rate)
	case s.Latency < 0:
		return fmt.Errorf("--latency is %v, want 0 or more", s.Latency)
	}
	return nil
}

// A rival is one way to do a collective.
type rival struct {
	name     string
	schedule schedule.Schedule
	price    time.Duration
}

// Run prints the prices, cheapest first, and then the schedule.
func (s *scheduleCmd) Run(p *process) error {
	rivals := s.rivals()
	chosen := rivals[0]
	if s.Algorithm != "" {
		i := slices.IndexFunc(rivals, func(r rival) bool { return r.name == s.Algorithm })
		if i < 0 {
			return usagef("%s among %d ranks has no algorithm %q, only %s", s.Kind, s.Ranks, s.Algorithm, names(rivals))
		}
		chosen = rivals[i]
	}
	table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s of %d bytes, links of %v and %d bytes/s:\n", s.Kind, s.Bytes, s.Latency, s.Rate)
	for _, r := range rivals {
		fmt.Fprintf(table, "  %s\t%d rounds\t%v\n", r.name, len(r.schedule.Rounds), r.price.Round(time.Microsecond))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.stdout, "\n%v", chosen.schedule)
	return err
}

// rivals are the known schedules for the kind, cheapest first.
func (s *scheduleCmd) rivals() []rival {
	// The same model of a network by which ops chooses at run time.
	links := schedule.Uniform{Delay: s.Latency, BytesPerSecond: float64(s.Rate)}
	var all []rival
	for name, t := range generate(s.Kind, s.Ranks) {
		all = append(all, rival{name, t, schedule.Price(t, int(s.Bytes), links)})
	}
	slices.SortFunc(all, func(a, b rival) int {
		if a.price != b.price {
			return int(a.price - b.price)
		}
		return strings.Compare(a.name, b.name)
	})
	return all
}

// names lists the algorithms for an error message.
func names(rivals []rival) string {
	set := make(map[string]bool)
	for _, r := range rivals {
		set[r.name] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(set)), ", ")
}

// generate builds the schedules of a kind by name, with roots at rank 0.
// Halving leaves chunk r on rank r only where n is a power of two.
func generate(kind string, n int) map[string]schedule.Schedule {
	power := bits.OnesCount(uint(n)) == 1
	all := make(map[string]schedule.Schedule)
	switch kind {
	case "all-reduce":
		all["ring"] = schedule.AllReduce(schedule.Ring(n))
		all["halving"] = schedule.AllReduce(schedule.Halving(n))
		all["binomial"] = schedule.AllReduce(schedule.Binomial(n))
		all["doubling"] = schedule.Doubling(n)
	case "reduce-scatter", "all-gather":
		all["ring"] = schedule.Ring(n)
		if power {
			all["halving"] = schedule.Halving(n)
		}
		if kind == "all-gather" {
			for name, s := range all {
				all[name] = s.Reverse()
			}
		}
	case "reduce":
		all["binomial"] = schedule.Binomial(n)
	case "broadcast":
		all["binomial"] = schedule.Binomial(n).Reverse()
	case "barrier":
		all["dissemination"] = schedule.Dissemination(n)
	}
	return all
}

// A size is a number of bytes with an optional unit: kB, MB, GB are powers of
// 1000, KiB, MiB, GiB of 1024.
type size int64

// UnmarshalText parses a size.
func (s *size) UnmarshalText(text []byte) error {
	// The digits end where the letters of a unit begin; ParseFloat sees to the rest.
	digits := strings.TrimRight(string(text), "BGKMiGk")
	units := map[string]float64{"": 1, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
	unit, known := units[string(text[len(digits):])]
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !known || !(n >= 0) || n*unit > math.MaxInt64/2 {
		return fmt.Errorf("%q is not a size: want a number of bytes, as 4096, 64KiB or 1.5MiB", text)
	}
	*s = size(n * unit)
	return nil
}
