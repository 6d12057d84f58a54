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
}

// due lists the peers to meet now, and marks them. The lock is held.
func (m *Mesh) due(now time.Time) []peer.AddrInfo {
	for id, a := range m.view {
		if m.contacts[id] == nil && id != m.self.ID {
			c := m.contact(id)
			if a.Since.After(m.self.Since) {
				c.next = now.Add(deference)
			}
		}
	}
	busy := 0
	for _, c := range m.contacts {
		if c.busy {
			busy++
		}
	}
	var due []peer.AddrInfo
	for id, c := range m.contacts {
		if c.met && !m.node.Connected(id) { // it went away: look again at once
			c.met, c.trouble, c.next = false, ErrLost.Error(), now
		}
		if c.busy || busy >= maxMeetings || c.next.After(now) {
			continue
		}
		info := peer.AddrInfo{ID: id, Addrs: m.firstAddrs(id)}
		if a := m.view[id]; a != nil {
			info.Addrs = slices.Concat(info.Addrs, a.Addrs)
		}
		if len(info.Addrs) == 0 { // it has expired
			delete(m.contacts, id)
			continue
		}
		c.busy = true
		busy++
		due = append(due, info)
	}
	return due
}

// firstAddrs is where a bootstrap peer was said to be.
func (m *Mesh) firstAddrs(id peer.ID) []multiaddr.Multiaddr {
	var addrs []multiaddr.Multiaddr
	for _, f := range m.first {
		if f.ID == id {
			addrs = append(addrs, f.Addrs...)
		}
	}
	return addrs
}

// contact is a peer's, made if it is new. The lock is held.
func (m *Mesh) contact(id peer.ID) *contact {
	c := m.contacts[id]
	if c == nil {
		c = new(contact)
		m.contacts[id] = c
	}
	return c
}

// situation is what decide looks at. The lock is held, as long as it does.
func (m *Mesh) situation() situation {
	s := situation{
		Self: m.self.ID, World: m.config.World, View: m.view, Contacts: m.contacts,
		First: m.first, Declined: m.declined,
	}
	if m.promise != nil {
		s.Promised = m.promise.roster.Members[0]
	}
	return s
}
