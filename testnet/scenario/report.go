package scenario

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"peermesh/ops"
	"peermesh/ops/flight/perfetto"
	"peermesh/testnet/simlink"
)

// A Report is what happened in a run, in virtual time since the first world stood.
type Report struct {
	Scenario *Scenario
	Took     time.Duration
	Events   []Happening // by time, node and what it is
	Rounds   []Round     // by number and epoch
	Links    []Traffic   // by From and To

	calls   []call
	traffic map[[2]int]*Traffic
}

// A Happening is something that a node went through.
type Happening struct {
	At    time.Duration
	Node  int
	What  string
	Fault bool // the scenario did it
}

// A Round is one collective of one world: from when the first rank began it to when
// the last was done with it, by success or failure.
type Round struct {
	Number   int
	Epoch    uint64
	From, To time.Duration
	Ranks    int
	Failed   int // ranks that got an error
}

// Traffic is what went from one node to another.
type Traffic struct {
	From, To int
	Messages int64 // moves of collectives: rounds of schedules over this link
	Payload  int64 // bytes of these
	Packets  int64 // of everything, heartbeats and membership too
	Bytes    int64
}

// A call is one rank's part in a round.
type call struct {
	node, round int
	epoch       uint64
	from, to    time.Duration
	failed      bool
}

func newReport(s *Scenario) *Report {
	return &Report{Scenario: s, traffic: make(map[[2]int]*Traffic)}
}

// Send counts a message that was sent.
func (c *counted) Send(ctx context.Context, to int, lane uint64, tag ops.Tag, n int64, parts iter.Seq2[[]byte, error]) error {
	err := c.World.Send(ctx, to, lane, tag, n, parts)
	if err == nil {
		c.count(to, n)
	}
	return err
}

func (p *play) tell(node int, what string) { p.happen(node, what, false) }

func (p *play) happen(node int, what string, fault bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.report; len(r.Events) < maxHappenings {
		r.Events = append(r.Events, Happening{p.since(), node, what, fault})
	}
}

func (p *play) played(node, round int, epoch uint64, from time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.calls = append(p.report.calls, call{node, round, epoch, from, p.since(), err != nil})
}

func (p *play) count(from, to int, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.report.between(from, to)
	t.Messages++
	t.Payload += n
}

func (r *Report) between(from, to int) *Traffic {
	key := [2]int{from, to}
	if r.traffic[key] == nil {
		r.traffic[key] = &Traffic{From: from, To: to}
	}
	return r.traffic[key]
}

// links completes the report when the run is over.
func (r *Report) links(counts []simlink.Count) {
	for _, c := range counts {
		t := r.between(c.From, c.To)
		t.Packets, t.Bytes = c.Packets, c.Bytes
	}
	for _, t := range r.traffic {
		r.Links = append(r.Links, *t)
	}
	slices.SortFunc(r.Links, func(a, b Traffic) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	// Nodes that act at one instant have told in any order.
	slices.SortStableFunc(r.Events, func(a, b Happening) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Node, b.Node)) })
	slices.SortFunc(r.calls, func(a, b call) int {
		return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.node, b.node))
	})
	for _, c := range r.calls {
		last := len(r.Rounds) - 1
		if last < 0 || r.Rounds[last].Number != c.round || r.Rounds[last].Epoch != c.epoch {
			r.Rounds = append(r.Rounds, Round{Number: c.round, Epoch: c.epoch, From: c.from})
			last++
		}
		d := &r.Rounds[last]
		d.From, d.To = min(d.From, c.from), max(d.To, c.to)
		d.Ranks++
		if c.failed {
			d.Failed++
		}
	}
}

// Finished is how many of the rounds all ranks of some world have finished.
func (r *Report) Finished() int {
	done := 0
	for _, d := range r.Rounds {
		if d.Failed == 0 {
			done = max(done, d.Number)
		}
	}
	return done
}

// String tells the run: what happened to whom, the rounds, and the links.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d rounds in %v\n\n", r.Finished(), r.Scenario.Rounds, r.Took)
	for _, e := range r.Events {
		mark := " "
		if e.Fault {
			mark = "!"
		}
		fmt.Fprintf(&b, "%14v %s node %d %s\n", e.At, mark, e.Node, e.What)
	}
	fmt.Fprintf(&b, "\n%5s %5s %14s %14s %5s %6s\n", "round", "world", "from", "took", "ranks", "failed")
	for _, d := range r.Rounds {
		fmt.Fprintf(&b, "%5d %5d %14v %14v %5d %6d\n", d.Number, d.Epoch, d.From, d.To-d.From, d.Ranks, d.Failed)
	}
	fmt.Fprintf(&b, "\n%9s %8s %14s %8s %14s\n", "link", "messages", "payload", "packets", "bytes")
	for _, t := range r.Links {
		fmt.Fprintf(&b, "%4d→%-4d %8d %14d %8d %14d\n", t.From, t.To, t.Messages, t.Payload, t.Packets, t.Bytes)
	}
	return b.String()
}

// what names a fault in a report.
func (f Fault) what() string {
	_, text, _ := strings.Cut(f.String(), string(f.Kind))
	return string(f.Kind) + text
}

// brief is the first line of an error, within bounds.
func brief(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text[:min(len(text), 300)]
}

// WriteTrace writes the run as a timeline: a track for every node, with its rounds
// as bars and its fate as marks.
func (r *Report) WriteTrace(w io.Writer) error {
	events := make([]perfetto.Event, 0, r.Scenario.Nodes+len(r.calls)+len(r.Events))
	for i := range r.Scenario.Nodes {
		events = append(events, perfetto.Track(0, i, fmt.Sprintf("node %d", i)))
	}
	for _, c := range r.calls {
		name := fmt.Sprintf("round %d", c.round)
		if c.failed {
			name += " (failed)"
		}
		events = append(events, perfetto.Slice(0, c.node, name, c.from, c.to-c.from).With("world", c.epoch))
	}
	for _, e := range r.Events {
		events = append(events, perfetto.Mark(0, e.Node, e.What, e.At))
	}
	if err := perfetto.Write(w, events); err != nil {
		return fmt.Errorf("scenario: trace: %w", err)
	}
	return nil
}
