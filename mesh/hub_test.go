package mesh

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// crowdOf is what a peer of many knows: peers a00, a01 … which came in the reverse order.
func crowdOf(n int, self peer.ID) situation {
	s := situation{Self: self, World: n, Memory: new(memory), View: view{}, Contacts: map[peer.ID]*contact{}}
	for i := range n {
		s.View.add(said(fmt.Sprintf("a%02d", i), n-i, 200))
	}
	return s
}

func TestHubs(t *testing.T) {
	now := time.Unix(100, 0)
	s := crowdOf(maxFull, "a05")
	if s.hubs(now) != nil || s.later(nil, "a09") != 0 {
		t.Error("a small mesh has hubs")
	}
	s = crowdOf(maxFull+1, "a05")
	s.First = boot("a12")
	s.Contacts["a00"] = &contact{trouble: "connection refused"}
	s.Contacts["a02"] = &contact{barred: now.Add(time.Second)}
	hubs := s.hubs(now)
	if want := []peer.ID{"a01", "a03", "a04"}; !slices.Equal(hubs, want) {
		t.Errorf("hubs %q, want %q", hubs, want)
	}
	for id, wait := range map[peer.ID]bool{"a01": false, "a12": false, "a00": true, "a09": true} {
		if got := s.later(hubs, id) > 0; got != wait {
			t.Errorf("%s can wait: %v", id, got)
		}
	}
	s.Self = "a03" // a hub meets everyone
	if s.later(hubs, "a09") != 0 {
		t.Error("a hub has to wait")
	}
}

// Members of the last world are met by their own hubs too: its rank 0 is asked who waits.
func TestHubsOfMembers(t *testing.T) {
	s := crowdOf(20, "a15")
	s.Memory.Last = &past{roster: newRoster("mesh", 1, digest{}, []peer.ID{"a07", "a11", "a15", "a18"})}
	hubs := s.hubs(time.Unix(100, 0))
	if want := []peer.ID{"a00", "a01", "a02", "a07", "a11", "a15"}; !slices.Equal(hubs, want) {
		t.Errorf("hubs %q, want %q", hubs, want)
	}
}

// Of every peer and every hub at least one looks for the other, if all have met one
// bootstrap peer in turn and know whoever came before.
func TestHubsAreMetByAll(t *testing.T) {
	const n = 40
	whole := crowdOf(n, "a00")
	hubs := whole.hubs(time.Unix(100, 0))
	order := whole.View.byAge()
	knows := func(i int, other peer.ID) bool { // the i-th to come looks for another
		s := situation{Self: order[i].ID, World: n, Memory: new(memory), View: view{}}
		for _, a := range order[:i+1] {
			s.View.add(a)
		}
		return s.View[other] != nil && s.later(s.hubs(time.Unix(100, 0)), other) == 0
	}
	for i, a := range order {
		for _, hub := range hubs {
			h := slices.IndexFunc(order, func(o *announcement) bool { return o.ID == hub })
			if i != h && !knows(i, hub) && !knows(h, a.ID) {
				t.Errorf("%s and hub %s do not meet", a.ID, hub)
			}
		}
	}
}

func TestPace(t *testing.T) {
	p := pace{size: crowded}
	if got := p.timeout(); got != 2*meetTimeout {
		t.Errorf("at first %s", got)
	}
	p.took(4 * time.Second)
	if got := p.timeout(); got != pacePatience*4*time.Second {
		t.Errorf("after a slow meeting %s", got)
	}
	if got := p.patient(time.Second); got != pacePatience*4*time.Second {
		t.Errorf("after a slow meeting what takes a second may take %s", got)
	}
	p.took(time.Hour)
	if got := p.timeout(); got != paceMost {
		t.Errorf("at most %s", got)
	}
	for range 200 {
		p.took(time.Millisecond)
	}
	if got := p.timeout(); got != 2*meetTimeout {
		t.Errorf("after many fast ones %s", got)
	}
	if crowd(time.Second, 0) != time.Second || crowd(time.Second, 2*crowded) != 3*time.Second {
		t.Error("crowd does not grow with the size")
	}
}
