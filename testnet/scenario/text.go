package scenario

import (
	"fmt"
	"strconv"
	"strings"

	"peermesh/testnet/simlink"
)

// String is the scenario's text: Parse reads it as an equal one.
func (s *Scenario) String() string {
	var b strings.Builder
	if s.Name != "" {
		fmt.Fprintf(&b, "name %s\n", s.Name)
	}
	fmt.Fprintf(&b, "nodes %d\n", s.Nodes)
	if s.Seed != 0 {
		fmt.Fprintf(&b, "seed %d\n", s.Seed)
	}
	for _, r := range s.Regions {
		fmt.Fprintf(&b, "region %s %v\n", r.Name, r.Nodes)
	}
	for _, p := range s.Ports {
		fmt.Fprintf(&b, "port %v%s\n", p.Nodes, portText(p.Port))
	}
	for _, l := range s.Links {
		fmt.Fprintf(&b, "link %s %s%s\n", l.From, l.To, linkText(l.Link))
	}
	if s.Min > 0 {
		fmt.Fprintf(&b, "min %d\n", s.Min)
	}
	fmt.Fprintf(&b, "rounds %d\nbytes %d\n", s.Rounds, s.Bytes)
	if s.Pause > 0 {
		fmt.Fprintf(&b, "pause %v\n", s.Pause)
	}
	for _, f := range s.Faults {
		fmt.Fprintf(&b, "%v\n", f)
	}
	return b.String()
}

// String is "3" or "0-7".
func (s Span) String() string {
	if s.First == s.Last {
		return strconv.Itoa(s.First)
	}
	return fmt.Sprintf("%d-%d", s.First, s.Last)
}

// String is a line of a scenario, such as "round 3 cut 0 1".
func (f Fault) String() string {
	when := fmt.Sprintf("at %v", f.At)
	if f.Round > 0 {
		when = fmt.Sprintf("round %d", f.Round)
	}
	text := fmt.Sprintf("%s %s", when, f.Kind)
	for _, n := range f.Nodes {
		text += fmt.Sprintf(" %d", n)
	}
	switch f.Kind {
	case Slow:
		text += portText(f.Port)
	case Relink:
		text += linkText(f.Link)
	case Skew:
		text += " " + f.Ahead.String()
	}
	return text
}

// portText names the rates even if they are without bound, so that there is a
// setting in any case.
func portText(p simlink.Port) string {
	text := fmt.Sprintf(" up=%s down=%s", number(p.Up), number(p.Down))
	if p.Queue > 0 {
		text += fmt.Sprintf(" queue=%d", p.Queue)
	}
	return text
}

func linkText(l simlink.Link) string {
	text := fmt.Sprintf(" latency=%v", l.Latency)
	if l.Jitter > 0 {
		text += fmt.Sprintf(" jitter=%v", l.Jitter)
	}
	if l.Rate > 0 {
		text += " rate=" + number(l.Rate)
	}
	if l.Loss > 0 {
		text += " loss=" + number(l.Loss)
	}
	return text
}

// number is a float's shortest text without exponent.
func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
