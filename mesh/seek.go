package mesh

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"peermesh/node/rendezvous"
)

// maxFound bounds the bootstrap peers that finders bring: on a local network anybody
// may say to be one.
const maxFound = 4 * MaxWorld

// finders are those of the bootstrap forms, and the config's own.
func (c Config) finders() (all []rendezvous.Finder, err error) {
	for _, form := range c.Bootstrap {
		if !rendezvous.Is(form) {
			continue
		}
		f, err := rendezvous.Parse(form, rendezvous.Config{Pins: c.Pins, DHT: c.DHT})
		if err != nil {
			return nil, fmt.Errorf("mesh: bootstrap: %w", err)
		}
		all = append(all, f)
	}
	return append(all, c.Finders...), nil
}

// seek looks for bootstrap peers by one finder, for as long as the mesh lasts. What does
// not mend ends the attempt to join.
func (m *Mesh) seek(f rendezvous.Finder) {
	m.seeking(f, "has found nobody yet")
	err := f.Find(m.ctx, rendezvous.Search{
		Node: m.node, Mesh: m.config.Name,
		Found: func(p peer.AddrInfo) {
			m.found(p)
			m.seeking(f, "")
		},
		Trouble: func(err error) {
			if err != nil {
				m.seeking(f, "has found nobody: "+why(err))
			}
		},
	})
	m.seeking(f, "")
	if err != nil {
		log.Warnf("mesh %q: bootstrap %s: %v", m.config.Name, f, err)
		m.refused(fmt.Errorf("mesh: bootstrap %s: %w", f, err))
	}
}

// seeking keeps, for people, how a search goes; nothing once it has found somebody.
func (m *Mesh) seeking(f rendezvous.Finder, how string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if how == "" {
		delete(m.sought, f.String())
	} else {
		m.sought[f.String()] = how
	}
}

// found takes a peer for a bootstrap peer, and meets it at once.
func (m *Mesh) found(p peer.AddrInfo) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.ID == m.self.ID || len(p.Addrs) == 0 {
		return
	}
	i := slices.IndexFunc(m.first, func(f peer.AddrInfo) bool { return f.ID == p.ID })
	switch {
	case i >= 0:
		m.first[i] = p
		return
	case len(m.first) >= maxFound:
		return
	}
	m.first = append(m.first, p)
	m.contact(p.ID).next = time.Now()
	m.poke()
}

// unfound says how searches go that have found nobody, in a fixed order. The lock is held.
func (m *Mesh) unfound() (all []string) {
	for _, form := range slices.Sorted(maps.Keys(m.sought)) {
		all = append(all, form+" "+m.sought[form])
	}
	return all
}
