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
	World    int                // ranks wanted
	View     view               // who has announced, self included
	Live     map[peer.ID]bool   // who answers; self need not be in it
	Trouble  map[peer.ID]string // why one does not
	First    []first            // bootstrap peers
	Promised peer.ID            // whose proposal we have acknowledged; empty: nobody's
	Declined string             // what became of our last proposal
}

// first is a bootstrap peer.
type first struct {
	ID   peer.ID
	Addr string
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
	Reason  string
}

// decide chooses among the live candidates the World that joined earliest; the
// lowest ID of those proposes. Peers whose views differ may choose differently:
// then a member declines, and views meet before the next attempt.
func decide(s situation, now time.Time) decision {
	var live []peer.ID
	for _, a := range s.View.byAge() {
		if a.Expires.After(now) && (a.ID == s.Self || s.Live[a.ID]) {
			live = append(live, a.ID)
		}
	}
	if len(live) < s.World {
		return decision{Reason: s.missing(live, now)}
	}
	chosen := slices.Clone(live[:s.World])
	slices.SortFunc(chosen, compareID)
	switch {
	case !slices.Contains(chosen, s.Self):
		return decision{Reason: fmt.Sprintf("%d of %d here without this peer, which joined later: %s",
			s.World, s.World, s.names(chosen))}
	case chosen[0] != s.Self:
		return decision{Reason: fmt.Sprintf("%d of %d here: %s; waiting for %s to propose the world",
			s.World, s.World, s.names(chosen), short(chosen[0]))}
	case s.Promised != "":
		return decision{Reason: fmt.Sprintf("%d of %d here: %s; waiting for the outcome of a proposal by %s",
			s.World, s.World, s.names(chosen), short(s.Promised))}
	}
	reason := fmt.Sprintf("%d of %d here: %s; this peer proposes the world", s.World, s.World, s.names(chosen))
	if s.Declined != "" {
		reason += "; last time " + s.Declined
	}
	return decision{Action: propose, Members: chosen, Reason: reason}
}

// missing says who is there, how many are not, and what stands in the way.
func (s situation) missing(live []peer.ID, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d here: %s; waiting for %d more", len(live), s.World, s.names(live), s.World-len(live))
	for _, a := range s.View.byAge() {
		if a.ID == s.Self || s.Live[a.ID] || !a.Expires.After(now) {
			continue
		}
		fmt.Fprintf(&b, "; %s has announced but ", short(a.ID))
		if t := s.Trouble[a.ID]; t != "" {
			fmt.Fprintf(&b, "cannot be reached: %s", t)
		} else {
			b.WriteString("was not met yet")
		}
	}
	for _, f := range s.First {
		if s.Live[f.ID] || s.View[f.ID] != nil {
			continue
		}
		if t := s.Trouble[f.ID]; t != "" {
			fmt.Fprintf(&b, "; bootstrap %s cannot be reached: %s", f.Addr, t)
		} else {
			fmt.Fprintf(&b, "; bootstrap %s was not met yet", f.Addr)
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
