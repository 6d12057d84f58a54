package main

import (
	"cmp"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strings"
	"time"

	"peermesh/ops"
	"peermesh/ops/schedule"
)

// maxPrinted is the most moves that are printed unless a schedule is asked for by
// name: those of some grow with the square of the ranks.
const maxPrinted = 512

// A scheduleCmd prints one schedule and the prices of all its rivals.
type scheduleCmd struct {
	Kind      string        `arg:"" enum:"all-reduce,reduce-scatter,all-gather,broadcast,reduce,gather,scatter,all-to-all,barrier" help:"all-reduce, reduce-scatter, all-gather, broadcast, reduce, gather, scatter, all-to-all or barrier."`
	Ranks     int           `short:"n" default:"4" placeholder:"N" help:"Ranks of the group."`
	Root      int           `placeholder:"R" help:"The rank from which, or to which (0)."`
	Bytes     size          `default:"1MiB" placeholder:"SIZE" help:"Size of the vector, of all blocks together, as 4096, 64KiB or 1.5MiB."`
	Algorithm string        `placeholder:"NAME" help:"Print this one rather than the one that a group takes."`
	Latency   time.Duration `default:"100us" placeholder:"TIME" help:"Latency of a link."`
	Rate      size          `default:"500MB" placeholder:"SIZE" help:"Bytes that a link carries a second."`
	SVG       string        `name:"svg" placeholder:"FILE" help:"Draw it, too."`
	hostFlags `embed:""`
}

// Validate bounds what is built.
func (s *scheduleCmd) Validate() error {
	if err := s.seat(&s.Ranks, s.Kind); err != nil {
		return err
	}
	switch {
	case s.Ranks < 1 || s.Ranks > schedule.MaxRanks:
		return fmt.Errorf("--ranks is %d, want 1 to %d", s.Ranks, schedule.MaxRanks)
	case s.Root < 0 || s.Root >= s.Ranks:
		return fmt.Errorf("--root is %d, want 0 to %d", s.Root, s.Ranks-1)
	case s.Root > 0 && !collectives[s.Kind].rooted():
		return fmt.Errorf("--root is %d, but in %s no rank is special", s.Root, s.Kind)
	case s.Rate < 1:
		return fmt.Errorf("--rate is %d, want at least one byte a second", s.Rate)
	case s.Latency < 0:
		return fmt.Errorf("--latency is %v, want 0 or more", s.Latency)
	}
	return nil
}

// Run prints a schedule, what is proved of it, and the prices of all, cheapest
// first.
func (s *scheduleCmd) Run(p *process) error {
	c := collectives[s.Kind]
	if !c.carries {
		s.Bytes = 0
	}
	all := s.candidates(int64(s.Bytes))
	taken := s.taken(all)
	chosen := all[taken]
	if s.GPUs != "" && s.Algorithm == "" {
		s.Algorithm = gpuAlgorithm
	}
	if s.Algorithm != "" {
		i := slices.IndexFunc(all, func(c ops.Candidate) bool { return c.Schedule.Algorithm() == s.Algorithm })
		if i < 0 {
			return usagef("%s among %d ranks has no algorithm %q, only %s", s.Kind, s.Ranks, s.Algorithm, names(all))
		}
		chosen = all[i]
	}
	proved, err := c.prove(chosen, s.Root)
	if err != nil {
		return err
	}
	if s.SVG != "" {
		err := replaceFile(s.SVG, func(w io.Writer) error { return schedule.WriteSVG(w, chosen.Schedule) })
		if err != nil {
			return usagef("--svg %s: %w", s.SVG, err)
		}
	}
	text := summary
	if moves(chosen.Schedule) <= maxPrinted || s.Algorithm != "" {
		text = schedule.Schedule.String
	}
	_, err = fmt.Fprintf(p.stdout, "%s\nproved: %s\npriced: %v over links of %v and %v/s%s\n\n%s",
		text(chosen.Schedule), proved, rounded(chosen.Price), s.Latency, s.Rate, s.hostFlags.words(), s.table(all, taken))
	return err
}

// candidates are the known ways to do it to so many bytes, cheapest first.
func (s *scheduleCmd) candidates(bytes int64) []ops.Candidate {
	links := s.links(schedule.Uniform{Delay: s.Latency, BytesPerSecond: float64(s.Rate)})
	return s.withGPUs(ops.Candidates(collectives[s.Kind].kind, s.Ranks, s.Root, bytes, links), bytes, links)
}

// taken is the place in all of what a group takes by itself. It prices by powers
// of two, and leaves out what holds back much.
func (s *scheduleCmd) taken(all []ops.Candidate) int {
	scale := int64(1) << bits.Len64(uint64(max(s.Bytes, 1)-1))
	priced := all
	if scale != int64(s.Bytes) {
		priced = s.candidates(scale)
	}
	light := slices.IndexFunc(priced, func(c ops.Candidate) bool { return !c.Named })
	best := priced[max(light, 0)].Schedule
	return slices.IndexFunc(all, func(c ops.Candidate) bool {
		return c.Schedule.Name == best.Name && c.Schedule.Chunks == best.Chunks
	})
}

// table compares the candidates.
func (s *scheduleCmd) table(all []ops.Candidate, taken int) string {
	var b strings.Builder
	if collectives[s.Kind].carries {
		fmt.Fprintf(&b, "%s of %v among %d ranks:\n", s.Kind, s.Bytes, s.Ranks)
	} else {
		fmt.Fprintf(&b, "%s among %d ranks:\n", s.Kind, s.Ranks)
	}
	fmt.Fprintf(&b, "   %-14s %7s %7s %15s %14s\n", "algorithm", "rounds", "chunks", "bytes", "price")
	for i, c := range all {
		marks := []byte("  ")
		if i == taken {
			marks[0] = '*'
		}
		if c.Canonical && collectives[s.Kind].sums {
			marks[1] = '='
		}
		fmt.Fprintf(&b, "%s %-14s %7d %7d %15d %14v\n", marks, c.Schedule.Algorithm(), len(c.Schedule.Rounds),
			c.Schedule.Chunks, busiest(c.Schedule, int64(s.Bytes)), rounded(c.Price))
	}
	b.WriteString("\nbytes are those that the busiest rank sends; * is what a group takes by itself")
	if collectives[s.Kind].sums {
		b.WriteString(";\n= adds up in the canonical order, as a deterministic group demands")
	}
	b.WriteString("\n")
	return b.String()
}

// rounded is a price without digits that no model can know.
func rounded(price time.Duration) time.Duration { return price.Round(time.Microsecond) }

// names lists the algorithms for an error message.
func names(all []ops.Candidate) string {
	var list []string
	for _, c := range all {
		list = append(list, c.Schedule.Algorithm())
	}
	slices.SortFunc(list, cmp.Compare[string])
	return strings.Join(slices.Compact(list), ", ")
}
