package mesh

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// patience is how long a peer waits for one that comes before it to propose. The
// lowest of those who are here may see less than others do, or be frozen.
const patience = voteTimeout

// A situation is all that a decision rests on.
type situation struct {
	Self     peer.ID
	World    int                  // ranks wanted
	Min      int                  // ranks that do, once there has been a world
	Quorum   Quorum               // what else it takes
	Memory   *memory              // of the worlds so far
	Skew     time.Duration        // by how much the clock is ahead by which announcements expire
	View     view                 // who has announced, self included
	Order    []*announcement      // View by claims, where somebody has sorted it
	Contacts map[peer.ID]*contact // who was met, and why another was not
	First    []peer.AddrInfo      // bootstrap peers
	Unfound  []string             // what became of looking for more
	Promised peer.ID              // whose proposal we have acknowledged; empty: nobody's
	Declined string               // what became of our last proposal
	Awaits   peer.ID              // whose proposal we wait for
	Stalled  time.Time            // since when
	Settle   time.Time            // until when members of the last world are given time to ask
}

// here reports whether a peer can be counted on, and wants a world.
func (s situation) here(id peer.ID, now time.Time) bool {
	c := s.Contacts[id]
	return id == s.Self || c != nil && c.met && c.asks && !now.Before(c.barred)
}

type action uint8

const (
	wait action = iota
	propose
)

// A decision is what to do next and, for people, why.
type decision struct {
	Action  action
	Members []peer.ID // to propose
	Awaits  peer.ID   // who is to propose; empty: nobody, or this peer
	Reason  func() string
}

// decide chooses among those who are here: members of the last world first, as
// they have what it learned, then those who joined earliest; of those who have
// failed of late as few as will do. The lowest ID of the chosen proposes. Peers
// whose views differ may choose differently: then a member declines, and views
// meet before the next attempt.
func decide(s situation, now time.Time) decision {
	steady, all := s.candidates(now)
	chosen := s.choose(steady)
	err := s.enough(chosen)
	if err != nil {
		if more := s.choose(all); s.enough(more) == nil {
			chosen, err = more, nil
		}
	}
	if err != nil {
		return decision{Reason: func() string { return s.missing(all, err, now) }}
	}
	if late := s.late(now); len(chosen) < s.World && late != "" {
		return decision{Reason: func() string {
			return fmt.Sprintf("%s; %s of the last world has not asked for the next one yet", s.count(chosen), short(late))
		}}
	}
	d := decision{Reason: func() string { return s.complete(chosen) }}
	turn := slices.Index(chosen, s.Self)
	if turn > 0 {
		d.Awaits = chosen[0]
		inVain := time.Duration(turn) * crowd(patience, s.World)
		if s.Awaits != chosen[0] || now.Sub(s.Stalled) < inVain {
			return d
		}
	}
	if turn >= 0 && s.Promised == "" {
		d.Action, d.Members = propose, chosen
	}
	return d
}

// candidates lists those who are here in the order of their claims, without and
// with those who have failed of late.
func (s situation) candidates(now time.Time) (steady, all []peer.ID) {
	var late []peer.ID
	for _, a := range s.claims() {
		if !a.Expires.After(now.Add(s.Skew)) || !s.here(a.ID, now) {
			continue
		}
		if c := s.Contacts[a.ID]; c != nil && now.Before(c.tardy) {
			late = append(late, a.ID)
		} else {
			steady = append(steady, a.ID)
		}
	}
	return steady, slices.Concat(steady, late)
}

// claims orders everyone by their claim to a place.
func (s situation) claims() []*announcement {
	if s.Order != nil {
		return s.Order
	}
	ages := s.View.byAge()
	slices.SortStableFunc(ages, func(a, b *announcement) int {
		switch x, y := s.member(a.ID), s.member(b.ID); {
		case x && !y:
			return -1
		case y && !x:
			return 1
		}
		return 0
	})
	return ages
}

// member reports whether a peer was in a world that the next one follows.
func (s situation) member(id peer.ID) bool {
	return s.Memory.Last != nil && s.Memory.Last.rank(id) >= 0 ||
		slices.ContainsFunc(s.Memory.Doubt, func(r roster) bool { return r.rank(id) >= 0 })
}

// choose fills a world.
func (s situation) choose(from []peer.ID) []peer.ID {
	chosen := slices.Clone(from[:min(len(from), s.World)])
	slices.SortFunc(chosen, compareID)
	return chosen
}

// errFew is that there are too few for a world, whoever they are.
var errFew = errors.New("mesh: too few")

// enough reports whether peers may form the next world, as far as this one knows.
func (s situation) enough(chosen []peer.ID) error {
	switch {
	case s.Memory.blank() && len(chosen) < s.World, len(chosen) < s.Min:
		return errFew
	case s.Quorum == Any:
		return nil
	}
	return s.Memory.mayGoOn(chosen)
}

// late is a member of the last world that lives but has not asked for the next
// one, while there is time; empty if there is none.
func (s situation) late(now time.Time) peer.ID {
	if !now.Before(s.Settle) {
		return ""
	}
	for id, c := range s.Contacts {
		if s.member(id) && c.met && !c.asks {
			return id
		}
	}
	return ""
}
