package watch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"peermesh/ops/flight"
)

const (
	// maxEvents and maxGone bound what is remembered of the past.
	maxEvents, maxGone = 200, 64
	// maxText bounds an event's text, which may quote a peer.
	maxText = 500
	// fresh is for how long a measurement of the own links holds.
	fresh = 400 * time.Millisecond
	// settle is the time over which rates are averaged.
	settle = 2 * time.Second
)

// A World is what a Board needs of a mesh.World.
type World interface {
	Epoch() uint64
	Rank() int
	Size() int
	Context() context.Context
	Signal(to int, channel uint32, p []byte) error
	OnSignal(channel uint32, f func(from int, p []byte))
	RTT(rank int) time.Duration
	Traffic(rank int) (sent, received int64)
}

// A Place is a world with what is known of it from elsewhere.
type Place struct {
	World   World
	Peer    func(rank int) string // its peer ID
	Relayed func(rank int) bool   // from here, through a relay
	// Capacity is the measured rate of a link in bytes a second; nil: none was measured.
	Capacity func(from, to int) float64
}

// A Config is what is known of a run before it begins.
type Config struct {
	Title  string // as "convnet", for the page
	Wanted int    // ranks of a whole world
	// Recorder is the Observer of this rank's groups; nil: nothing is seen of operations.
	Recorder *flight.Recorder
}

// A Board is what one rank knows of a run: its world and the other ranks, the training,
// and by its Config's Recorder what is in flight. It is told by whoever trains and by the
// others' reports, and read by the page, by /metrics and by a progress bar. All its methods are for any
// goroutine.
type Board struct {
	config Config
	now    func() time.Time

	mu     sync.Mutex
	place  *Place // nil before the first world
	since  time.Time
	inside time.Duration // in operations, when the world began
	steps  uint32        // in this world
	ended  bool          // the world
	lost   int           // the rank that it has ended by; −1
	worlds int
	ranks  []standing // of the world
	links  []linkReport
	before []traffic // of each rank, when it was last looked
	at     time.Time // that was
	turn   int       // first rank of the links of the next report
	gone   []Gone
	events []Event
	train  Train
	told   time.Time // when there was a step last
	curves Curves
	count  counters
}

// A standing is what is known of a rank.
type standing struct {
	report *report // the last; nil: none yet
	at     time.Time
	work   time.Duration // between operations, a step, averaged; 0: not known
}

type traffic struct{ sent, received int64 }

// counters are those that only grow, over all worlds.
type counters struct{ samples, lost, sent, received int64 }

// New makes a Board.
func New(c Config) *Board {
	if c.Recorder == nil {
		c.Recorder = flight.New(1)
	}
	return &Board{config: c, now: time.Now, lost: -1}
}

// Enter says that a world stands. Its members report to whoever asks from then on.
func (b *Board) Enter(p Place) {
	inside, now := b.config.Recorder.Busy(b.now()), b.now()
	b.mu.Lock()
	b.part(&p)
	b.place, b.since, b.inside, b.steps, b.ended, b.lost = &p, now, inside, 0, false, -1
	n := p.World.Size()
	b.ranks, b.links, b.before, b.at, b.turn = make([]standing, n), make([]linkReport, n), make([]traffic, n), now, 0
	b.worlds++
	b.note("world", "world %d of %d ranks stands; this is rank %d", p.World.Epoch(), n, p.World.Rank())
	b.mu.Unlock()
	p.World.OnSignal(Channel, func(from int, msg []byte) { b.hear(&p, from, msg) })
}

// part notes who of the world before is in the next no more. The lock is held.
func (b *Board) part(next *Place) {
	names := make([]string, next.World.Size())
	for r := range names {
		names[r] = next.Peer(r)
	}
	b.gone = slices.DeleteFunc(b.gone, func(g Gone) bool { return slices.Contains(names, g.Peer) })
	if b.place == nil {
		return
	}
	for r := range b.place.World.Size() {
		name := b.place.Peer(r)
		if slices.Contains(names, name) {
			continue
		}
		b.count.lost++
		b.gone = append(b.gone, Gone{Rank: r, Epoch: b.place.World.Epoch(), Peer: name})
		b.note("gone", "rank %d of world %d is gone: %s", r, b.place.World.Epoch(), name)
	}
	b.gone = b.gone[max(0, len(b.gone)-maxGone):]
}

// Exit says that the world has ended, why, and by which of its ranks; −1 for none.
func (b *Board) Exit(why error, rank int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.place == nil || b.ended {
		return
	}
	b.ended, b.lost = true, rank
	b.note("ended", "world %d has ended: %v", b.place.World.Epoch(), why)
}

// Measured says what the links of the world were measured to carry.
func (b *Board) Measured(capacity func(from, to int) float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.place != nil {
		b.place.Capacity = capacity
	}
}

// Note adds an event.
func (b *Board) Note(kind, format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.note(kind, format, args...)
}

// note adds an event. The lock is held.
func (b *Board) note(kind, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(text) > maxText {
		text = text[:maxText] + "…"
	}
	b.events = append(b.events, Event{Time: b.now(), Kind: kind, Text: text})
	b.events = b.events[max(0, len(b.events)-maxEvents):]
}

// hear takes a signal of another rank: it answers a question and keeps a report.
func (b *Board) hear(p *Place, from int, msg []byte) {
	if len(msg) == 1 && msg[0] == question {
		_ = p.World.Signal(from, Channel, b.say(p).encode()) // lost: asked again
		return
	}
	r, err := decodeReport(msg, p.World.Size())
	if err != nil {
		return // from another version, or a liar; its rank shows as silent
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.place == p {
		b.keep(from, r)
	}
}

// keep takes over a report. The lock is held.
func (b *Board) keep(from int, r *report) {
	s := &b.ranks[from]
	if old := s.report; old != nil {
		if steps := int64(r.Steps) - int64(old.Steps); steps > 0 {
			work := max(0, (r.Age-r.Inside)-(old.Age-old.Inside)) / time.Duration(steps)
			if s.work == 0 {
				s.work = work
			}
			s.work += (work - s.work) / 4
		}
		// A report has some of the links: those of earlier ones stay.
		links := old.Links
		if len(links) < len(b.ranks) {
			links = make([]linkReport, len(b.ranks))
			copy(links[old.First:], old.Links)
		}
		copy(links[r.First:], r.Links)
		r.Links, r.First = links, 0
	}
	s.report, s.at = r, b.now()
}

// say is the report of this rank for another, with as many links as there is room for.
func (b *Board) say(p *Place) *report {
	r := b.self(p)
	if len(r.Links) == 0 {
		return r
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.turn >= len(r.Links) {
		b.turn = 0
	}
	r.First = b.turn
	r.Links = r.Links[b.turn:min(len(r.Links), b.turn+maxLinks)]
	b.turn += maxLinks
	return r
}

// self is the report of this rank with all of its links; with none when p is over.
func (b *Board) self(p *Place) *report {
	b.look(p)
	now := b.now()
	inside := b.config.Recorder.Busy(now)
	flights := b.config.Recorder.InFlight(maxFlights)
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &report{Step: uint64(b.train.Step), Age: now.Sub(b.since), Inside: inside - b.inside, Steps: b.steps,
		Samples: float32(b.train.Rate)}
	if len(flights) > 0 {
		oldest := flights[0]
		r.Kind, r.Seq, r.Waits = oldest.Kind, oldest.Seq, now.Sub(oldest.Begun)
	}
	if b.place == p {
		r.Links = slices.Clone(b.links)
	}
	return r
}

// look measures this rank's links, unless it has just done so.
func (b *Board) look(p *Place) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	passed := now.Sub(b.at)
	if b.place != p || passed < fresh {
		return
	}
	b.at = now
	var bytes float64
	for r := range b.links {
		sent, received := p.World.Traffic(r)
		old := b.before[r]
		b.before[r] = traffic{sent, received}
		b.count.sent += sent - old.sent
		b.count.received += received - old.received
		b.links[r] = linkReport{p.World.RTT(r), smooth(b.links[r].Sent, float64(sent-old.sent), passed),
			smooth(b.links[r].Received, float64(received-old.received), passed)}
		bytes += b.links[r].Sent + b.links[r].Received
	}
	b.train.Bytes = Number(bytes)
}

// smooth averages a rate over about the time of settle.
func smooth(rate, n float64, passed time.Duration) float64 {
	now := n / passed.Seconds()
	if rate == 0 {
		return now
	}
	return rate + (now-rate)*min(1, passed.Seconds()/settle.Seconds())
}

// Ask has the other ranks report, and this one look at itself.
func (b *Board) Ask() {
	b.mu.Lock()
	p, ended := b.place, b.ended
	b.mu.Unlock()
	if p == nil || ended {
		return
	}
	r := b.self(p)
	b.mu.Lock()
	if b.place == p {
		b.keep(p.World.Rank(), r)
	}
	b.mu.Unlock()
	for rank := range p.World.Size() {
		if rank != p.World.Rank() {
			_ = p.World.Signal(rank, Channel, []byte{question}) // lost: asked again
		}
	}
}
