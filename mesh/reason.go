package mesh

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// trouble is why a peer is not here, as far as we know.
func (s situation) trouble(id peer.ID, now time.Time) string {
	switch c := s.Contacts[id]; {
	case c == nil:
		return "was not met yet"
	case c.trouble != "":
		return "cannot be reached: " + c.trouble
	case now.Before(c.barred):
		return "is kept out: " + c.fault
	case c.met && c.world > 0:
		return fmt.Sprintf("is in world %d", c.world)
	case c.met:
		return "does not ask for a world"
	}
	return "was not met yet"
}

// count says how many are here, and who.
func (s situation) count(ids []peer.ID) string {
	return fmt.Sprintf("%d of %d here: %s", len(ids), s.World, s.names(ids))
}

// complete says what a world waits for that has all its members.
func (s situation) complete(chosen []peer.ID) string {
	switch {
	case !slices.Contains(chosen, s.Self):
		return fmt.Sprintf("%d of %d here without this peer, which joined later: %s", len(chosen), s.World, s.names(chosen))
	case s.Promised != "":
		return fmt.Sprintf("%s; waiting for the outcome of a proposal by %s", s.count(chosen), short(s.Promised))
	case chosen[0] != s.Self:
		return fmt.Sprintf("%s; waiting for %s to propose the world", s.count(chosen), short(chosen[0]))
	}
	reason := s.count(chosen) + "; this peer proposes the world"
	if s.Declined != "" {
		reason += "; last time " + s.Declined
	}
	return reason
}

// missing says who is there, how many are not, and what stands in the way.
func (s situation) missing(live []peer.ID, why error, now time.Time) string {
	var b strings.Builder
	b.WriteString(s.count(live))
	want := s.Min
	if s.Memory.blank() {
		want = s.World
	}
	switch {
	case len(live) < want:
		fmt.Fprintf(&b, "; waiting for %d more", want-len(live))
	case errors.As(why, new(*quorumError)):
		fmt.Fprintf(&b, "; %s", why)
	}
	for _, a := range s.View.byAge() {
		if !s.here(a.ID, now) && a.Expires.After(now.Add(s.Skew)) {
			fmt.Fprintf(&b, "; %s has announced but %s", short(a.ID), s.trouble(a.ID, now))
		}
	}
	for _, f := range s.First {
		if s.View[f.ID] == nil {
			fmt.Fprintf(&b, "; bootstrap %s %s", f.Addrs[0], s.trouble(f.ID, now))
		}
	}
	for _, form := range s.Unfound {
		fmt.Fprintf(&b, "; bootstrap %s", form)
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
