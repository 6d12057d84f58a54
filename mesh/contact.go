package mesh

import (
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

// A contact is what we know at first hand of a peer.
type contact struct {
	busy    bool      // a meeting is under way
	next    time.Time // not before
	pause   time.Duration
	met     bool   // the last meeting, either way, went well
	trouble string // why it did not
	shut    int    // how often in a row it would not let us connect

	asks   bool      // it wants a world
	world  uint64    // the epoch that it is in, if it does not
	faults int       // worlds that ended by its fault, of late
	failed time.Time // when the last of them did
	tardy  time.Time // until when it comes after those who have not failed
	barred time.Time // until when it is kept out
	fault  string    // why
}

const (
	// A peer that has ended a world is let in after the others for a time that
	// doubles from tardyFirst to tardyMost, so that one that comes and goes does
	// not stop all others each time. forgiven is how long it takes to be as new.
	tardyFirst, tardyMost = 500 * time.Millisecond, 30 * time.Second
	forgiven              = 2 * time.Minute
)

// fail counts a world that a peer has ended.
func (c *contact) fail(now time.Time) {
	if now.Sub(c.failed) > forgiven {
		c.faults = 0
	}
	c.failed = now
	c.tardy = now.Add(min(tardyFirst<<min(c.faults, 16), tardyMost))
	c.faults++
}

// guilty reports whether something is still held against the peer.
func (c *contact) guilty(now time.Time) bool {
	return now.Before(c.barred) || now.Sub(c.failed) <= forgiven
}

// due lists the peers to meet now, and marks them; members of a world that stands
// have no need to meet each other, and in a large mesh the hubs come first. The lock
// is held.
func (m *Mesh) due(now time.Time) []peer.AddrInfo {
	for id, a := range m.view {
		if m.contacts[id] == nil && id != m.self.ID {
			c := m.contact(id)
			if a.Since.After(m.self.Since) {
				c.next = now.Add(deference)
			}
		}
	}
	s := m.situation()
	hubs := s.hubs(now)
	busy := 0
	for _, c := range m.contacts {
		if c.busy {
			busy++
		}
	}
	var due []peer.AddrInfo
	for id, c := range m.contacts {
		if c.met && !m.node.Connected(id) { // it went away: look again at once
			c.met, c.asks, c.trouble, c.next = false, false, ErrLost.Error(), now
		}
		if w := m.current; w != nil && w.stands() && w.roster.rank(id) >= 0 {
			continue
		}
		if c.busy || busy >= maxMeetings || c.next.Add(s.later(hubs, id)).After(now) {
			continue
		}
		info := peer.AddrInfo{ID: id, Addrs: m.firstAddrs(id)}
		if a := m.view[id]; a != nil {
			info.Addrs = slices.Concat(info.Addrs, a.Addrs)
		}
		if len(info.Addrs) == 0 { // it has expired
			if !c.guilty(now) {
				delete(m.contacts, id)
			}
			continue
		}
		c.busy = true
		busy++
		due = append(due, info)
	}
	return due
}

// firstAddrs is where a bootstrap peer was said to be, or a member of the last
// world: these are looked for as long as it takes, whatever has expired.
func (m *Mesh) firstAddrs(id peer.ID) []multiaddr.Multiaddr {
	var addrs []multiaddr.Multiaddr
	for _, f := range m.first {
		if f.ID == id {
			addrs = append(addrs, f.Addrs...)
		}
	}
	if a := m.former[id]; a != nil {
		addrs = append(addrs, a.Addrs...)
	}
	return addrs
}

// contact is a peer's, made if it is new. The lock is held.
func (m *Mesh) contact(id peer.ID) *contact {
	c := m.contacts[id]
	if c == nil {
		c = &contact{next: time.Now()}
		m.contacts[id] = c
	}
	return c
}

// situation is what decide looks at. The lock is held, as long as it does.
func (m *Mesh) situation() situation {
	s := situation{
		Self: m.self.ID, World: m.config.World, Min: m.config.Min, Quorum: m.config.Quorum, Memory: m.memory,
		Skew: time.Until(m.config.Clock()), View: m.view, Contacts: m.contacts, First: m.first, Declined: m.declined,
		Unfound: m.unfound(), Awaits: m.awaits, Stalled: m.stalled, Settle: m.settled,
	}
	if m.promise != nil {
		s.Promised = m.promiser
	}
	s.Order = m.order.of(s)
	return s
}

// An order keeps View by claims: to sort it anew each time would be most of what a peer
// of a large mesh does until there is a world.
type order struct {
	claims []*announcement
	last   *past // of the memory that they follow from, as do the others
	doubt  int
	epoch  uint64
}

func (o *order) of(s situation) []*announcement {
	last, doubt, epoch := s.Memory.Last, len(s.Memory.Doubt), s.Memory.Promised
	if o.claims == nil || o.last != last || o.doubt != doubt || o.epoch != epoch {
		*o = order{s.claims(), last, doubt, epoch}
	}
	return o.claims
}

// viewChanged is called when the view has. The lock is held.
func (m *Mesh) viewChanged() { m.order.claims = nil }
