package watch

import (
	"math"
	"slices"
	"time"
)

const (
	// silence is how old the last report of a rank may be that others are asked for.
	silence = 5 * time.Second
	// laggard is how much longer than the median rank a slow one works between its
	// operations, at least; and slack how much that must be at the least.
	laggard = 1.3
	slack   = time.Millisecond
)

// A State is what a Board knows at one moment: the page's and /state's JSON.
type State struct {
	Summary
	Links  Links  `json:"links"`
	Curves Curves `json:"curves"`

	counters
	worlds int
}

// A Summary is what a State has besides what is long.
type Summary struct {
	Time    time.Time `json:"time"`
	Title   string    `json:"title"`
	World   Standing  `json:"world"`
	Ranks   []Rank    `json:"ranks"`
	Gone    []Gone    `json:"gone"`
	Train   Train     `json:"train"`
	Flights []Flight  `json:"flights"`
	Kinds   []Kind    `json:"kinds"`
	Events  []Event   `json:"events"` // the newest last
}

// A Standing is which world it is.
type Standing struct {
	Epoch  uint64 `json:"epoch"` // 0: none yet
	Rank   int    `json:"rank"`
	Size   int    `json:"size"`
	Wanted int    `json:"wanted"`
	Ended  bool   `json:"ended"`
}

// How a rank is.
const (
	Here    = "here"
	Slow    = "slow"    // it works longer between operations than others do
	Silent  = "silent"  // it is asked and does not answer
	Lost    = "gone"    // the world has ended by it
	Unknown = "unknown" // it has not been asked yet
)

// A Rank is how a rank of the world does.
type Rank struct {
	Rank   int     `json:"rank"`
	Peer   string  `json:"peer"`
	State  string  `json:"state"`
	Step   uint64  `json:"step"`
	Work   float64 `json:"work"` // seconds between operations, a step
	Doing  string  `json:"doing,omitempty"`
	Waited float64 `json:"waited"` // seconds that this has been in flight
}

// A Link is between two ranks: the lower and the higher, the round trip in µs, what goes
// over it in both directions and what it could carry, both in bytes a second, and whether
// it goes through a relay. What is not known is 0. As an array it is short.
type Link [6]float64

// Links are those of a world.
type Links []Link

// MarshalJSON writes them by hand, as there are so many.
func (l Links) MarshalJSON() ([]byte, error) { return l.append(make([]byte, 0, 2+40*len(l))), nil }

func (l Links) append(b []byte) []byte {
	b = append(b, '[')
	for i := range l {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendNumbers(b, l[i][:])
	}
	return append(b, ']')
}

// A Gone is a peer that was in a world and is in none now.
type Gone struct {
	Rank  int    `json:"rank"` // that it had there
	Epoch uint64 `json:"epoch"`
	Peer  string `json:"peer"`
}

// An Event is something that happened, with its reason.
type Event struct {
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`
	Text string    `json:"text"`
}

// State is what is known now.
func (b *Board) State() *State {
	s := new(State)
	b.renew(s)
	return s
}

// renew has a State be what is known now, in the memory that it has.
func (b *Board) renew(s *State) {
	now := b.now()
	flights, kinds := inFlight(b.config.Recorder, now), ended(b.config.Recorder)
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Summary = Summary{Time: now, Title: b.config.Title, World: Standing{Wanted: b.config.Wanted}, Ranks: emptied(s.Ranks),
		Gone: append(emptied(s.Gone), b.gone...), Train: b.train, Flights: flights, Kinds: kinds, Events: append(emptied(s.Events), b.events...)}
	s.Links, s.counters, s.worlds = s.Links[:0], b.count, b.worlds
	s.Curves.renew(&b.curves)
	if b.place == nil {
		return
	}
	w := b.place.World
	s.World = Standing{Epoch: w.Epoch(), Rank: w.Rank(), Size: w.Size(), Wanted: b.config.Wanted, Ended: b.ended}
	limit := b.limit()
	for r := range b.ranks {
		s.Ranks = append(s.Ranks, b.rank(r, now, limit))
	}
	s.Links = b.linked(s.Links)
}

// emptied is a list without its elements, which in JSON is a list even if there was none.
func emptied[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list[:0]
}

// rank says how one does. The lock is held.
func (b *Board) rank(r int, now time.Time, limit time.Duration) Rank {
	s := &b.ranks[r]
	one := Rank{Rank: r, Peer: b.place.Peer(r), State: Here, Work: s.work.Seconds()}
	if s.report != nil {
		one.Step, one.Waited = s.report.Step, s.report.Waits.Seconds()
		if s.report.Kind != 0 {
			one.Doing = s.report.Kind.String()
		}
	}
	switch {
	case b.lost == r:
		one.State = Lost
	case s.report == nil:
		one.State = Unknown
	case now.Sub(s.at) > silence && !b.ended && !b.train.Done:
		one.State = Silent
	case limit > 0 && s.work > limit:
		one.State = Slow
	}
	return one
}

// limit is how long a rank may work between operations until it is slow; 0: nobody
// is. The lock is held.
func (b *Board) limit() time.Duration {
	var all []time.Duration
	for r := range b.ranks {
		if b.ranks[r].work > 0 {
			all = append(all, b.ranks[r].work)
		}
	}
	if len(all) < 2 {
		return 0
	}
	slices.Sort(all)
	median := all[(len(all)-1)/2]
	return max(time.Duration(laggard*float64(median)), median+slack)
}

// linked appends the links that anything is known of. Of what its ends say of one the
// shorter round trip counts, and the traffic that either has seen. The lock is held.
func (b *Board) linked(links Links) Links {
	n, self := len(b.ranks), b.place.World.Rank()
	for lo := range n {
		for hi := lo + 1; hi < n; hi++ {
			here, there := b.ranks[lo].link(hi), b.ranks[hi].link(lo)
			l := Link{float64(lo), float64(hi), rtt(here, there),
				math.Round(max(here.Sent+here.Received, there.Sent+there.Received))}
			if b.place.Capacity != nil {
				l[4] = math.Round(b.place.Capacity(lo, hi))
			}
			if lo == self && b.place.Relayed(hi) || hi == self && b.place.Relayed(lo) {
				l[5] = 1
			}
			if l[2] > 0 || l[3] > 0 || l[4] > 0 || l[5] > 0 {
				links = append(links, l)
			}
		}
	}
	return links
}

func (s *standing) link(to int) (l linkReport) {
	if r := s.report; r != nil && to >= r.First && to < r.First+len(r.Links) {
		l = r.Links[to-r.First]
	}
	return l
}

// rtt is the shorter of the round trips that are known, in µs.
func rtt(a, b linkReport) float64 {
	d := min(a.RTT, b.RTT)
	if d == 0 {
		d = max(a.RTT, b.RTT)
	}
	return float64(d.Microseconds())
}
