package mesh

import (
	"maps"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
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
	addrs := make(map[peer.ID]peer.AddrInfo)
	for _, a := range m.view {
		addrs[a.ID] = peer.AddrInfo{ID: a.ID, Addrs: a.Addrs}
	}
	for _, f := range m.first {
		known := addrs[f.ID]
		addrs[f.ID] = peer.AddrInfo{ID: f.ID, Addrs: slices.Concat(f.Addrs, known.Addrs)}
	}
	delete(addrs, m.self.ID)
	var due []peer.AddrInfo
	for id, info := range addrs {
		c := m.contact(id)
		if c.met && !m.node.Connected(id) { // it went away: look again at once
			c.met, c.trouble, c.next = false, ErrLost.Error(), now
		}
		if !c.busy && !c.next.After(now) {
			c.busy = true
			due = append(due, info)
		}
	}
	maps.DeleteFunc(m.contacts, func(id peer.ID, c *contact) bool {
		_, known := addrs[id]
		return !known && !c.busy
	})
	return due
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

// situation is what decide looks at. The lock is held.
func (m *Mesh) situation() situation {
	s := situation{
		Self: m.self.ID, World: m.config.World, View: m.view, Declined: m.declined,
		Live: make(map[peer.ID]bool), Trouble: make(map[peer.ID]string),
	}
	for id, c := range m.contacts {
		s.Live[id] = c.met
		s.Trouble[id] = c.trouble
	}
	for _, f := range m.first {
		s.First = append(s.First, first{ID: f.ID, Addr: f.Addrs[0].String()})
	}
	if m.promise != nil {
		s.Promised = m.promise.roster.Members[0]
	}
	return s
}
