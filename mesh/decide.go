package mesh

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// A situation is all that a decision rests on.
type situation struct {
	Self     peer.ID
	World    int                  // ranks wanted
	View     view                 // who has announced, self included
	Contacts map[peer.ID]*contact // who was met, and why another was not
	First    []peer.AddrInfo      // bootstrap peers
	Promised peer.ID              // whose proposal we have acknowledged; empty: nobody's
	Declined string               // what became of our last proposal
}

// here reports whether a peer can be counted on.
func (s situation) here(id peer.ID) bool {
	c := s.Contacts[id]
	return id == s.Self || c != nil && c.met
}

// trouble is why a peer is not here, as far as we know.
func (s situation) trouble(id peer.ID) string {
	if c := s.Contacts[id]; c != nil && c.trouble != "" {
		return "cannot be reached: " + c.trouble
	}
	return "was not met yet"
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
	Reason  func() string
}

// decide chooses among the live candidates the World that joined earliest; the
// lowest ID of those proposes. Peers whose views differ may choose differently:
// then a member declines, and views meet before the next attempt.
func decide(s situation, now time.Time) decision {
	var live []peer.ID
	for _, a := range s.View.byAge() {
		if a.Expires.After(now) && s.here(a.ID) {
			live = append(live, a.ID)
		}
	}
	if len(live) < s.World {
		return decision{Reason: func() string { return s.missing(live, now) }}
	}
	chosen := slices.Clone(live[:s.World])
	slices.SortFunc(chosen, compareID)
	d := decision{Reason: func() string { return s.complete(chosen) }}
	if chosen[0] == s.Self && s.Promised == "" {
		d.Action, d.Members = propose, chosen
	}
	return d
}

// complete says what a world waits for that has all its members.
func (s situation) complete(chosen []peer.ID) string {
	here := fmt.Sprintf("%d of %d here", s.World, s.World)
	switch {
	case !slices.Contains(chosen, s.Self):
		return fmt.Sprintf("%s without this peer, which joined later: %s", here, s.names(chosen))
	case chosen[0] != s.Self:
		return fmt.Sprintf("%s: %s; waiting for %s to propose the world", here, s.names(chosen), short(chosen[0]))
	case s.Promised != "":
		return fmt.Sprintf("%s: %s; waiting for the outcome of a proposal by %s", here, s.names(chosen), short(s.Promised))
	}
	reason := fmt.Sprintf("%s: %s; this peer proposes the world", here, s.names(chosen))
	if s.Declined != "" {
		reason += "; last time " + s.Declined
	}
	return reason
}

// missing says who is there, how many are not, and what stands in the way.
func (s situation) missing(live []peer.ID, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d here: %s; waiting for %d more", len(live), s.World, s.names(live), s.World-len(live))
	for _, a := range s.View.byAge() {
		if !s.here(a.ID) && a.Expires.After(now) {
			fmt.Fprintf(&b, "; %s has announced but %s", short(a.ID), s.trouble(a.ID))
		}
	}
	for _, f := range s.First {
		if s.View[f.ID] == nil {
			fmt.Fprintf(&b, "; bootstrap %s %s", f.Addrs[0], s.trouble(f.ID))
		}
	}
	return b.String()
}

func (s situation) names(ids []peer.ID) string {
	if len(ids) == 0 {
		return "nobody"
	}
	var names []string
	for _, id := range ids {
		if id == s.Self {
			names = append(names, short(id)+" (this peer)")
		} else {
			names = append(names, short(id))
		}
	}
	return strings.Join(names, ", ")
}

// short is a peer's ID for log lines: its beginning, which is the same for all
// keys of a kind, and the end, which tells them apart.
func short(id peer.ID) string {
	s := id.String()
	if len(s) <= 12 {
		return s
	}
	return s[:4] + "…" + s[len(s)-6:]
}
