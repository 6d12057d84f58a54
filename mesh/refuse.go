package mesh

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"peermesh/node"
)

// errExpired is what a peer learns whose announcement comes from the past.
var errExpired = fmt.Errorf("the announcement has expired: one of the two clocks is wrong by more than %s", lifetime)

// judge answers an announcement.
func (m *Mesh) judge(a *announcement) *answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	reply := &answer{Epoch: m.memory.Promised, Base: m.memory.base()}
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
	case unlike(a.Terms, m.config.Terms) != "":
		return no(refuseTerms, "%s", unlike(a.Terms, m.config.Terms))
	case !a.Expires.After(m.config.Clock()):
		return no(declineExpired, "%v", errExpired)
	}
	w := m.current
	if w == nil || !w.stands() {
		return reply
	}
	rank := w.roster.rank(a.ID)
	if rank < 0 && (w.Size() < m.config.World || m.config.Min < m.config.World) {
		return reply // it may be let in, or take the place of one that dies
	}
	if rank < 0 {
		return no(refuseFull, "the world of %d is complete: %s", w.Size(), names(w.roster.Members))
	}
	if m.twin(w, a) {
		return no(refuseIdentity, "this peer's ID is that of rank %d in the running world: "+
			"two processes cannot share an identity", rank)
	}
	return reply
}

// twinTime is how long a member's older self may be heard of after a newer one has
// come. What was sent before its death is read by then.
const twinTime = time.Second

// twin reports whether two processes have the identity of a member: then the older
// one is still heard of when the newer one has been there for a while. Otherwise
// the member has started again, and the world ends, as its older self is gone. The
// lock is held.
func (m *Mesh) twin(w *World, a *announcement) bool {
	was := m.former[a.ID]
	if l := w.has(w.roster.rank(a.ID)); was != nil && l != nil && l.isAttached() && a.Since.After(was.Since) {
		now := time.Now()
		first, again := m.twins[a.ID]
		if !again {
			m.twins[a.ID] = now
			return false
		}
		heard := w.start.Add(time.Duration(l.heard.Load()))
		if now.Sub(heard) > twinTime {
			m.wg.Go(func() { w.fault(l.rank, fmt.Errorf("%w: it has started again", ErrLost)) })
		}
		return heard.Sub(first) > twinTime
	}
	return false
}

// firmly is how often in a row all bootstrap peers turn away one that has met nobody
// yet, before it gives up. Once is not enough: a peer that ends hangs up likewise.
const firmly = 3

// turnedAway counts that a peer did not let us connect, if that is what the error says.
// Who has no secret, or another, or is on no list, has no way in. The lock is held.
func (m *Mesh) turnedAway(by peer.ID, err error) {
	c := m.contact(by)
	if !errors.Is(err, node.ErrSecret) && !errors.Is(err, node.ErrNotAllowed) {
		c.shut = 0
		return
	}
	if c.shut++; c.shut == 1 {
		log.Warnf("mesh %q: no way in by %s: %s", m.config.Name, by, why(err))
	}
	if m.metAny || !m.memory.blank() || !m.forming() {
		return
	}
	for _, f := range m.first {
		if m.contact(f.ID).shut < firmly {
			return
		}
	}
	m.fatal = &RefusedError{Peer: by, Reason: why(err), Err: err}
	m.announceChange()
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
