package planet

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"time"

	"peermesh/ops/schedule"
)

// MaxMoves bounds the moves of a plan that is played.
const MaxMoves = 1 << 22

// Play carries a plan out: every rank sends its messages of a round one after the other
// once it has entered it, takes those that come for it there in the order of their
// arrival, holds back what comes too early, and enters the next round of its own when
// all have been sent and taken. It returns when the last rank is done, in virtual time.
func (p Plan) Play(bytes int, l schedule.Links) (time.Duration, error) {
	if p.Moves > MaxMoves {
		return 0, fmt.Errorf("planet: %s has %d moves: at most %d are played", p.Name, p.Moves, MaxMoves)
	}
	g := &game{links: l, bytes: float64(bytes), chunks: float64(p.Chunks), players: make([]player, p.Ranks)}
	n := int32(0)
	for round := range p.Rounds {
		for _, m := range round {
			g.players[m.From].part(n).sends = append(g.players[m.From].part(n).sends, sending{int32(m.To), int32(m.N)})
			g.players[m.To].part(n).takes++
		}
		n++
	}
	for r := range g.players {
		g.enter(r, 0)
	}
	for g.events.Len() > 0 {
		e := heap.Pop(&g.events).(event)
		if e.enters {
			g.players[e.rank].at++
			g.enter(int(e.rank), e.at)
		} else {
			g.arrive(e)
		}
	}
	for r := range g.players {
		if q := &g.players[r]; q.at < len(q.parts) {
			return 0, fmt.Errorf("planet: %s: rank %d waits in round %d for ever", p.Name, r, q.parts[q.at].round)
		}
	}
	return g.last, nil
}

// A game is a plan being played.
type game struct {
	links         schedule.Links
	bytes, chunks float64
	players       []player
	events        events
	count         uint64
	last          time.Duration
}

// A player is one rank.
type player struct {
	parts   []part // of the rounds that it takes part in
	at      int    // the index of its part now
	out, in time.Duration
	left    int     // messages of the round still to come
	early   []event // messages of later rounds, in the order of arrival
}

type part struct {
	round int32
	sends []sending
	takes int
}

type sending struct{ to, chunks int32 }

// part is the one of a round, added if it is new.
func (p *player) part(round int32) *part {
	if k := len(p.parts); k == 0 || p.parts[k-1].round != round {
		p.parts = append(p.parts, part{round: round})
	}
	return &p.parts[len(p.parts)-1]
}

// An event is the arrival of a message's first bit, or a rank's entry into a round.
type event struct {
	at     time.Duration
	count  uint64 // keeps events of one instant in order
	enters bool
	rank   int32
	round  int32
	wire   time.Duration // that the message occupies a port
	whole  time.Duration // when its last bit comes, if the port is free
}

// enter has a rank enter the round that it is at.
func (g *game) enter(r int, now time.Duration) {
	p := &g.players[r]
	p.out, p.in = now, now
	g.last = max(g.last, now)
	if p.at == len(p.parts) {
		return
	}
	part := &p.parts[p.at]
	for _, s := range part.sends {
		wire := time.Duration(g.bytes * float64(s.chunks) / g.chunks / g.links.Rate(r, int(s.to)) * 1e9)
		way := g.links.Latency(r, int(s.to))
		g.push(event{at: p.out + way, rank: s.to, round: part.round, wire: wire, whole: p.out + wire + way})
		p.out += wire
	}
	p.left = part.takes
	early := p.early
	p.early = slices.DeleteFunc(slices.Clone(early), func(e event) bool { return e.round == part.round })
	for _, e := range early {
		if e.round == part.round {
			g.take(p, e)
		}
	}
	g.done(r)
}

// arrive brings a message to a rank.
func (g *game) arrive(e event) {
	p := &g.players[e.rank]
	if p.at == len(p.parts) || p.parts[p.at].round != e.round {
		p.early = append(p.early, e)
		return
	}
	g.take(p, e)
	g.done(int(e.rank))
}

func (g *game) take(p *player, e event) {
	p.in = max(p.in+e.wire, e.whole)
	p.left--
}

// done lets a rank go on whose round is over.
func (g *game) done(r int) {
	if p := &g.players[r]; p.left == 0 {
		p.left = -1 // it enters once
		g.push(event{at: max(p.out, p.in), enters: true, rank: int32(r)})
	}
}

func (g *game) push(e event) {
	e.count = g.count
	g.count++
	heap.Push(&g.events, e)
}

// events are a heap by time.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[j].at), cmp.Compare(e[i].count, e[j].count)) < 0
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}
