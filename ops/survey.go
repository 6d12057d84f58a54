package ops

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"peermesh/ops/schedule"
)

// laneWindow is how many bytes a lane carries ahead of its reader, as far as a transport's
// streams are known: node.Window.
const laneWindow = 1 << 20

// A surveyor is a Transport that knows what its links are like, the same on every rank:
// mesh.World is one. It waits until it does, which has to come to pass on all ranks or
// end the world.
type surveyor interface {
	Survey(ctx context.Context) (interface {
		Latency(from, to int) time.Duration
		Rate(from, to int) float64
		Host(rank int) int64
	}, error)
}

// A root is what NewGroup was given, and all groups made from that share.
type root struct {
	t   Transport
	ids ids

	mu    sync.Mutex
	links schedule.Links // nil before somebody asks, where the transport is a surveyor
}

// surveyed are a transport's own. What it says of links inside a host is nominal; where it
// knows the processors there, what ranks of a host cost each other is known better.
type surveyed struct {
	Located
	shares []float64 // by rank; nil if no processors are known
}

// survey takes what a transport says of n ranks. A method Cores(rank int) int has how many
// processors a rank may use, alike on all ranks, or 0; a method CoreSet(rank int) int, if
// there is one, a number for which.
func survey(n int, l Located) surveyed {
	c, ok := l.(interface{ Cores(rank int) int })
	if !ok {
		return surveyed{Located: l}
	}
	set := func(int) int { return 0 }
	if s, ok := l.(interface{ CoreSet(rank int) int }); ok {
		set = s.CoreSet
	}
	return surveyed{l, sharesOf(n, l.Host, func(rank int) (int, int) { return c.Cores(rank), set(rank) })}
}

// Share is 1 where nothing is known.
func (s surveyed) Share(rank int) float64 {
	if s.shares == nil {
		return 1
	}
	return s.shares[rank]
}

func (s surveyed) inside(from, to int) bool {
	return s.shares != nil && s.Host(from) != 0 && s.Host(from) == s.Host(to)
}

// Latency inside a host is that of ranks that have a processor each, or of others.
func (s surveyed) Latency(from, to int) time.Duration {
	switch {
	case !s.inside(from, to):
		return s.Located.Latency(from, to)
	case s.shares[to] < 1:
		return handOver
	}
	return atOnce
}

// Rate inside a host is what a processor copies.
func (s surveyed) Rate(from, to int) float64 {
	if s.inside(from, to) {
		return copyRate
	}
	return s.Located.Rate(from, to)
}

// priced are the links by which groups that are made now go. The first call waits for a
// survey, where links are to come of one, and fails if the world ends before.
func (r *root) priced() (schedule.Links, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.links != nil {
		return r.links, nil
	}
	l, err := r.t.(surveyor).Survey(r.t.Context())
	if err != nil {
		return nil, fmt.Errorf("ops: no links to choose by: %w", err)
	}
	r.links = survey(r.t.Size(), l)
	return r.links, nil
}

func (r *root) relink(l schedule.Links) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.links = l
}

// among are the links by which a group of some of the ranks goes. On one host of which
// the processors are not known, a survey has nothing to say, and the guess stands.
func (r *root) among(some ranks) (schedule.Links, error) {
	l, err := r.priced()
	if err != nil {
		return nil, err
	}
	if s, ok := l.(surveyed); ok && s.shares == nil && s.together(some) {
		return DefaultLinks, nil
	}
	if some.list == nil {
		return l, nil
	}
	return linksAmong{l, some}, nil
}

// together reports whether the ranks are on one host.
func (s surveyed) together(some ranks) bool {
	for i := range some.n {
		if s.Host(some.world(i)) != s.Host(some.world(0)) {
			return false
		}
	}
	return true
}

// settle has the group's plans go by links that are known. The first call may wait: all
// others of that group wait behind it, and would have to anyway. The lock is held.
func (p *plans) settle() error {
	if p.links != nil {
		return nil
	}
	l, err := p.source()
	if err == nil {
		p.adopt(l)
	}
	return err
}

// Links are what the group prices its schedules by, by ranks of the group: Config.Links,
// what the transport knows of its links, or what Measure has found. The first call may
// wait for that, and the call of a rank whose world has ended before returns DefaultLinks.
func (g *Group) Links() schedule.Links {
	g.plans.mu.Lock()
	defer g.plans.mu.Unlock()
	if g.plans.settle() != nil {
		return DefaultLinks
	}
	return g.plans.links
}

// lanesFor is how many lanes a schedule is cut into: by what a chunk is worth, up to
// autoLanes, but inside a host to no more than its ranks have processors each; and on long
// links by as many windows as it takes to have twice the bytes under way that a round trip
// carries, but of no less than a staging buffer each.
func lanesFor(s schedule.Schedule, bytes int64, l schedule.Links) int {
	chunk := bytes / int64(s.Chunks)
	lanes := min(max(chunk/laneSize, 1), autoLanes)
	under, procs := 0.0, 0.0
	for _, round := range s.Rounds {
		for _, m := range round {
			if way := l.Latency(m.From, m.To); way >= distant {
				under = max(under, 2*2*way.Seconds()*l.Rate(m.From, m.To))
			}
			procs = max(procs, processorsFor(m, l))
		}
	}
	lanes = min(lanes, max(int64(min(procs, autoLanes)), 1))
	wide := min(math.Ceil(under/laneWindow), float64(chunk/stageSize), MaxLanes)
	return int(max(float64(lanes), wide))
}

// processorsFor is how many processors the lanes of a message have work for: between
// hosts as many as there are lanes, for what takes time there is the link. Inside one a
// lane is copying, and a second one only somebody else to take turns with: with one lane
// four ranks on two processors took 5 ms for a scatter of 64 MiB, and 7 with four.
func processorsFor(m schedule.Move, l schedule.Links) float64 {
	host, ok := l.(Shared)
	if !ok || host.Host(m.From) == 0 || host.Host(m.From) != host.Host(m.To) {
		return autoLanes
	}
	return min(host.Share(m.From), host.Share(m.To))
}
