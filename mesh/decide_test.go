package mesh

import (
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

func TestDecide(t *testing.T) {
	now := time.Unix(100, 0)
	live := func(ids ...peer.ID) map[peer.ID]bool {
		m := make(map[peer.ID]bool)
		for _, id := range ids {
			m[id] = true
		}
		return m
	}
	views := func(as ...*announcement) view {
		v := view{}
		for _, a := range as {
			v.add(a)
		}
		return v
	}
	for _, c := range []struct {
		name string
		s    situation
		want decision
	}{
		{"alone", situation{Self: "a", World: 1, View: views(said("a", 1, 200))},
			decision{propose, []peer.ID{"a"}, "1 of 1 here: " + short("a") + " (this peer); this peer proposes the world"}},
		{"nobody else", situation{Self: "a", World: 3, View: views(said("a", 1, 200)),
			First: []first{{"b", "/ip4/1"}, {"c", "/ip4/2"}}, Trouble: map[peer.ID]string{"b": "connection refused"}},
			decision{Reason: "1 of 3 here: " + short("a") + " (this peer); waiting for 2 more; " +
				"bootstrap /ip4/1 cannot be reached: connection refused; bootstrap /ip4/2 was not met yet"}},
		{"announced, not reached", situation{Self: "a", World: 2, View: views(said("a", 1, 200), said("b", 2, 200), said("c", 3, 200)),
			First: []first{{"b", "/ip4/1"}}, Trouble: map[peer.ID]string{"b": "no answer in time"}},
			decision{Reason: "1 of 2 here: " + short("a") + " (this peer); waiting for 1 more; " +
				short("b") + " has announced but cannot be reached: no answer in time; " + short("c") + " has announced but was not met yet"}},
		{"lowest proposes", situation{Self: "a", World: 2, View: views(said("b", 1, 200), said("a", 2, 200)), Live: live("b"),
			Declined: "b declined: busy"},
			decision{propose, []peer.ID{"a", "b"}, "2 of 2 here: " + short("a") + " (this peer), " + short("b") +
				"; this peer proposes the world; last time b declined: busy"}},
		{"another proposes", situation{Self: "b", World: 2, View: views(said("b", 1, 200), said("a", 2, 200)), Live: live("a")},
			decision{Reason: "2 of 2 here: " + short("a") + ", " + short("b") + " (this peer); waiting for " + short("a") + " to propose the world"}},
		{"promised", situation{Self: "a", World: 2, View: views(said("b", 1, 200), said("a", 2, 200)), Live: live("b"), Promised: "c"},
			decision{Reason: "2 of 2 here: " + short("a") + " (this peer), " + short("b") + "; waiting for the outcome of a proposal by " + short("c")}},
		{"too late", situation{Self: "a", World: 2, View: views(said("b", 1, 200), said("c", 2, 200), said("a", 3, 200)), Live: live("b", "c")},
			decision{Reason: "2 of 2 here without this peer, which joined later: " + short("b") + ", " + short("c")}},
		{"earliest first, dead passed over", situation{Self: "b", World: 2,
			View: views(said("a", 1, 200), said("b", 2, 200), said("c", 3, 200), said("d", 4, 200)), Live: live("c", "d")},
			decision{propose, []peer.ID{"b", "c"}, "2 of 2 here: " + short("b") + " (this peer), " + short("c") + "; this peer proposes the world"}},
		{"expired", situation{Self: "a", World: 2, View: views(said("a", 1, 200), said("b", 2, 100)), Live: live("b")},
			decision{Reason: "1 of 2 here: " + short("a") + " (this peer); waiting for 1 more"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := decide(c.s, now)
			if got.Action != c.want.Action || !slices.Equal(got.Members, c.want.Members) || got.Reason != c.want.Reason {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// Peers that see the same agree on who proposes, and on what.
func TestDecideAgrees(t *testing.T) {
	v := view{}
	live := make(map[peer.ID]bool)
	for i, id := range []string{"e", "b", "d", "a", "c"} {
		v.add(said(id, i/2, 200))
		live[peer.ID(id)] = true
	}
	proposers := 0
	for id := range v {
		d := decide(situation{Self: id, World: 3, View: v, Live: live}, time.Unix(100, 0))
		if d.Action == propose {
			proposers++
			if id != "a" || !slices.Equal(d.Members, []peer.ID{"a", "b", "e"}) {
				t.Errorf("%s proposes %q", id, d.Members)
			}
		}
	}
	if proposers != 1 {
		t.Errorf("%d proposers", proposers)
	}
}
