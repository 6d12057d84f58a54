package mesh

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

func live(ids ...peer.ID) map[peer.ID]*contact {
	m := make(map[peer.ID]*contact)
	for _, id := range ids {
		m[id] = &contact{met: true, asks: true}
	}
	return m
}

func dead(id peer.ID, trouble string) map[peer.ID]*contact {
	return map[peer.ID]*contact{id: {trouble: trouble}}
}

func boot(ids ...peer.ID) (all []peer.AddrInfo) {
	for i, id := range ids {
		all = append(all, peer.AddrInfo{ID: id, Addrs: []multiaddr.Multiaddr{
			multiaddr.StringCast(fmt.Sprintf("/ip4/192.0.2.%d", i+1))}})
	}
	return all
}

func views(as ...*announcement) view {
	v := view{}
	for _, a := range as {
		v.add(a)
	}
	return v
}

func TestDecide(t *testing.T) {
	now := time.Unix(100, 0)
	for _, c := range []struct {
		name    string
		s       situation
		members []peer.ID // proposed
		reason  string
	}{
		{"alone", situation{Self: "a", World: 1, View: views(said("a", 1, 200))},
			[]peer.ID{"a"}, "1 of 1 here: " + short("a") + " (this peer); this peer proposes the world"},
		{"nobody else", situation{Self: "a", World: 3, View: views(said("a", 1, 200)),
			First: boot("b", "c"), Contacts: dead("b", "connection refused")},
			nil, "1 of 3 here: " + short("a") + " (this peer); waiting for 2 more; " +
				"bootstrap /ip4/192.0.2.1 cannot be reached: connection refused; bootstrap /ip4/192.0.2.2 was not met yet"},
		{"announced, not reached", situation{Self: "a", World: 2, View: views(said("a", 1, 200), said("b", 2, 200), said("c", 3, 200)),
			First: boot("b"), Contacts: dead("b", "no answer in time")},
			nil, "1 of 2 here: " + short("a") + " (this peer); waiting for 1 more; " +
				short("b") + " has announced but cannot be reached: no answer in time; " + short("c") + " has announced but was not met yet"},
		{"lowest proposes", situation{Self: "a", World: 2, View: views(said("b", 1, 200), said("a", 2, 200)), Contacts: live("b"),
			Declined: "b declined: busy"},
			[]peer.ID{"a", "b"}, "2 of 2 here: " + short("a") + " (this peer), " + short("b") +
				"; this peer proposes the world; last time b declined: busy"},
		{"another proposes", situation{Self: "b", World: 2, View: views(said("b", 1, 200), said("a", 2, 200)), Contacts: live("a")},
			nil, "2 of 2 here: " + short("a") + ", " + short("b") + " (this peer); waiting for " + short("a") + " to propose the world"},
		{"promised", situation{Self: "a", World: 2, View: views(said("b", 1, 200), said("a", 2, 200)), Contacts: live("b"), Promised: "c"},
			nil, "2 of 2 here: " + short("a") + " (this peer), " + short("b") + "; waiting for the outcome of a proposal by " + short("c")},
		{"too late", situation{Self: "a", World: 2, View: views(said("b", 1, 200), said("c", 2, 200), said("a", 3, 200)), Contacts: live("b", "c")},
			nil, "2 of 2 here without this peer, which joined later: " + short("b") + ", " + short("c")},
		{"earliest first, dead passed over", situation{Self: "b", World: 2,
			View: views(said("a", 1, 200), said("b", 2, 200), said("c", 3, 200), said("d", 4, 200)), Contacts: live("c", "d")},
			[]peer.ID{"b", "c"}, "2 of 2 here: " + short("b") + " (this peer), " + short("c") + "; this peer proposes the world"},
		{"expired", situation{Self: "a", World: 2, View: views(said("a", 1, 200), said("b", 2, 100)), Contacts: live("b")},
			nil, "1 of 2 here: " + short("a") + " (this peer); waiting for 1 more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.s.Min, c.s.Memory = c.s.World, new(memory)
			got := decide(c.s, now)
			if (got.Action == propose) != (c.members != nil) || !slices.Equal(got.Members, c.members) || got.Reason() != c.reason {
				t.Errorf("got  %q, %s\nwant %q, %s", got.Members, got.Reason(), c.members, c.reason)
			}
		})
	}
}

// Peers that see the same agree on who proposes, and on what.
func TestDecideAgrees(t *testing.T) {
	v := view{}
	live := make(map[peer.ID]*contact)
	for i, id := range []string{"e", "b", "d", "a", "c"} {
		v.add(said(id, i/2, 200))
		live[peer.ID(id)] = &contact{met: true, asks: true}
	}
	proposers := 0
	for id := range v {
		d := decide(situation{Self: id, World: 3, Min: 3, Memory: new(memory), View: v, Contacts: live}, time.Unix(100, 0))
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
