package mesh

import (
	"slices"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Waiting names the peers that ask for a place while the world has fewer than
// Config.World ranks, at most as many as there is room for. To let them in, any
// rank calls World.End(ErrGrow) between two steps, and all take the next world.
func (m *Mesh) Waiting() []peer.ID {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.current
	if w == nil || !w.stands() {
		return nil
	}
	var all []peer.ID
	for id, c := range m.contacts {
		if c.met && w.roster.rank(id) < 0 {
			all = append(all, id)
		}
	}
	slices.SortFunc(all, compareID)
	return all[:min(len(all), m.config.World-w.Size())]
}
