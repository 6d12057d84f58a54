package mesh

import (
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Waiting names the peers that ask for a place while the world has fewer than
// Config.World ranks, at most as many as there is room for. To let them in, any
// rank calls World.End(ErrGrow) between two steps, and all take the next world. A
// peer that has ended worlds of late is named after a while.
func (m *Mesh) Waiting() []peer.ID {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.current
	if w == nil || !w.stands() {
		return nil
	}
	now := time.Now()
	var all []peer.ID
	for id, c := range m.contacts {
		if c.met && c.asks && !now.Before(c.tardy) && !now.Before(c.barred) && w.roster.rank(id) < 0 && m.node.Connected(id) {
			all = append(all, id)
		}
	}
	slices.SortFunc(all, compareID)
	return all[:min(len(all), m.config.World-w.Size())]
}
