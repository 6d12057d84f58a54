package mesh

import (
	"fmt"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// judge answers an announcement.
func (m *Mesh) judge(a *announcement) *answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	reply := &answer{Epoch: m.epoch, Base: m.base}
	no := func(code uint8, format string, args ...any) *answer {
		reply.Code, reply.Text = code, fmt.Sprintf(format, args...)
		return reply
	}
	switch {
	case a.Version != protocolVersion:
		return no(refuseVersion, "it speaks version %d of Peermesh, this peer version %d", protocolVersion, a.Version)
	case a.Mesh != m.config.Name:
		return no(refuseName, "it is in mesh %q, this peer in mesh %q", m.config.Name, a.Mesh)
	case a.World != m.config.World:
		return no(refuseSize, "it wants a world of %d, this peer one of %d", m.config.World, a.World)
	}
	w := m.current
	if w == nil || !w.stands() {
		return reply
	}
	rank := w.roster.rank(a.ID)
	if rank < 0 {
		return no(refuseFull, "the world of %d is complete: %s", w.Size(), names(w.roster.Members))
	}
	if known := m.view[a.ID]; known != nil && a.Since.After(known.Since) {
		return no(refuseIdentity, "this peer's ID is that of rank %d in the running world: "+
			"two processes cannot share an identity", rank)
	}
	return reply
}

// logRefusal is rate-limited: strangers decide how often it is called.
func (m *Mesh) logRefusal(id peer.ID, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if now.Before(m.refusal) {
		m.unlogged++
		return
	}
	log.Warnf("mesh %q: refused %s; told it: %s (%d more refusals since the last report)", m.config.Name, id, text, m.unlogged)
	m.refusal, m.unlogged = now.Add(refusalEvery), 0
}

func names(ids []peer.ID) string {
	var all []string
	for _, id := range ids {
		all = append(all, short(id))
	}
	return strings.Join(all, ", ")
}
