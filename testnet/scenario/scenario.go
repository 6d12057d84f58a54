package scenario

import (
	"time"

	"peermesh/testnet/simlink"
)

// Bounds of what a scenario may ask for.
const (
	MaxNodes  = 256
	MaxRounds = 10_000
	MaxFaults = 10_000
	MaxBytes  = 1 << 30
	maxText   = 1 << 20 // bytes
	maxName   = 64
	maxTime   = 24 * time.Hour
)

// A Scenario is a world on a modelled network, what it computes, and what happens
// to it meanwhile. Its text is what Parse reads and String writes.
type Scenario struct {
	Name    string
	Nodes   int
	Seed    uint64
	Regions []Region // every node is in one at most; one in none is in a place of its own
	Ports   []Port   // the last that covers a node counts
	Links   []Link   // the last that covers two nodes counts
	Min     int      // ranks that a world can live with; 0: all
	Rounds  int      // collectives, one after the other
	Bytes   int      // of each
	Pause   time.Duration
	Faults  []Fault
}

// A Region is nodes that are near each other.
type Region struct {
	Name  string
	Nodes Span
}

// A Span is the nodes from First to Last, both included.
type Span struct{ First, Last int }

// A Port gives the nodes of a span their rates.
type Port struct {
	Nodes Span
	Port  simlink.Port
}

// A Link is what the ways between the nodes of two places are like. A place is a
// region's name, a span, or "*" for all.
type Link struct {
	From, To string
	Link     simlink.Link
}

// A Fault is something that happens, at a time after the first world stands or
// before a round begins.
type Fault struct {
	At    time.Duration // if Round is 0
	Round int           // from 1
	Kind  Kind
	Nodes []int         // one, or two for Cut, Heal and Link
	Port  simlink.Port  // of Slow
	Link  simlink.Link  // of Relink
	Ahead time.Duration // of Skew
}

// A Kind is what a fault does.
type Kind string

// The kinds of faults; see package testnet for what they are.
const (
	Kill    Kind = "kill"
	Restart Kind = "restart"
	Freeze  Kind = "freeze"
	Thaw    Kind = "thaw"
	Cut     Kind = "cut"
	Heal    Kind = "heal"
	Slow    Kind = "slow"
	Relink  Kind = "relink"
	Skew    Kind = "skew"
)

// operands is how many nodes a kind of fault names; 0 for a kind that is none.
func (k Kind) operands() int {
	switch k {
	case Kill, Restart, Freeze, Thaw, Slow, Skew:
		return 1
	case Cut, Heal, Relink:
		return 2
	}
	return 0
}

// port is that of a node.
func (s *Scenario) port(node int) simlink.Port {
	var p simlink.Port
	for _, q := range s.Ports {
		if q.Nodes.has(node) {
			p = q.Port
		}
	}
	return p
}

// link is the one between two nodes.
func (s *Scenario) link(a, b int) simlink.Link {
	var l simlink.Link
	for _, m := range s.Links {
		if s.in(m.From, a) && s.in(m.To, b) || s.in(m.From, b) && s.in(m.To, a) {
			l = m.Link
		}
	}
	return l
}

// in reports whether a node is at a place.
func (s *Scenario) in(place string, node int) bool {
	if place == "*" {
		return true
	}
	for _, r := range s.Regions {
		if r.Name == place {
			return r.Nodes.has(node)
		}
	}
	span, err := parseSpan(place)
	return err == nil && span.has(node)
}

func (s Span) has(node int) bool { return s.First <= node && node <= s.Last }
