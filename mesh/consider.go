package mesh

import (
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// barFor is how long a peer is kept out of new worlds that has broken the protocol
// or made a claim that cannot be true.
const barFor = time.Minute

// appendVote is an answer to a proposal. With a yes, and with the news that the
// proposal is out of date, goes what we remember.
func appendVote(a *answer, mind *memory) []byte {
	p := a.append(nil)
	if a.Code == answerYes || a.Code == declineStale {
		p = mind.append(p)
	}
	return p
}

func readVote(r io.Reader, mesh string) (*answer, *memory, error) {
	a, err := readAnswer(r)
	if err != nil || a.Code != answerYes && a.Code != declineStale {
		return a, nil, err
	}
	mind, err := readMemory(r, mesh)
	return a, mind, err
}

// consider answers a proposal; yes is a promise to take part in no other until
// this one's verdict, and in no other of its epoch for ever.
func (m *Mesh) consider(p *proposal, from peer.ID) (*answer, *memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	code, text := m.object(p, from)
	if code == answerYes {
		if err := m.promiseTo(p, from); err != nil {
			code, text = declineIdle, err.Error()
		}
	}
	mind := m.memory.clone()
	if code == answerYes {
		mind.Line = nil // the proposer rests on the same world
	}
	return &answer{Code: code, Epoch: m.memory.Promised, Base: m.memory.base(), Text: text}, mind
}

// object is what there is against a proposal. The lock is held.
func (m *Mesh) object(p *proposal, from peer.ID) (uint8, string) {
	no := func(code uint8, format string, args ...any) (uint8, string) {
		return code, fmt.Sprintf(format, args...)
	}
	for _, a := range p.members {
		if !m.ours(a) {
			return no(refuseName, "%s does not belong to mesh %q and a world of %d", short(a.ID), m.config.Name, m.config.World)
		}
	}
	switch {
	case len(p.members) > m.config.World || p.roster.rank(m.self.ID) < 0:
		return no(refuseSize, "that is no world of %d with %s", m.config.World, short(m.self.ID))
	case m.fatal != nil:
		return no(declineIdle, "it is closing")
	case m.current != nil && m.current.ctx.Err() == nil:
		return no(declineWorld, "it is in world %d", m.current.Epoch())
	case !m.forming():
		return no(declineIdle, "it does not ask for a world")
	case m.promise != nil:
		return no(declineBusy, "it has acknowledged another proposal, by %s", short(m.promiser))
	}
	m.learnMind(from, p.mind)
	switch {
	case p.roster.Base != m.memory.base():
		return no(declineStale, "the proposal rests on another world than %d", m.memory.epoch())
	case p.roster.Epoch <= m.memory.Promised:
		return no(declineStale, "epoch %d is past", p.roster.Epoch)
	case p.roster.Epoch > m.memory.Promised+maxJump:
		m.bar(from, fmt.Sprintf("it proposed epoch %d after %d", p.roster.Epoch, m.memory.Promised))
		return no(declineQuorum, "epoch %d is out of all measure", p.roster.Epoch)
	}
	least := m.config.Min
	if m.memory.blank() && p.mind.blank() {
		least = m.config.World
	}
	if len(p.members) < least {
		return no(refuseSize, "that is no world of %d with %s", least, short(m.self.ID))
	}
	for _, id := range p.roster.Members {
		if c := m.contacts[id]; c != nil && time.Now().Before(c.barred) {
			return no(declineQuorum, "it keeps out %s: %s", short(id), c.fault)
		}
	}
	if m.config.Quorum == Majority {
		if err := m.memory.mayGoOn(p.roster.Members); err != nil {
			return no(declineQuorum, "%v", err)
		}
	}
	return answerYes, ""
}

// learnMind takes note of the worlds that another remembers, one after the other: the
// last may be of strangers, and those before lead there. The lock is held.
func (m *Mesh) learnMind(from peer.ID, mind *memory) {
	for _, p := range mind.Line {
		if m.memory.related(p, m.self.ID) {
			m.learnPast(from, p)
		}
	}
	m.learnPast(from, mind.Last)
}

// learnPast takes note of a world that others have been through without us, if
// they can prove it. The lock is held.
func (m *Mesh) learnPast(from peer.ID, p *past) {
	if p == nil || p.Epoch <= m.memory.epoch() || m.current != nil && !m.current.finished() {
		return
	}
	if m.config.Quorum == Majority && !m.memory.related(p, m.self.ID) {
		m.declined = fmt.Sprintf("%s knows world %d of others: %s", short(from), p.Epoch, names(p.Members))
		return
	}
	if err := p.check(); err != nil {
		m.bar(from, err.Error())
		return
	}
	m.settle(p)
}

// hearEpoch takes note of an epoch that another has promised. The lock is held.
func (m *Mesh) hearEpoch(from peer.ID, epoch uint64) {
	known := max(m.memory.Promised, m.heard)
	if epoch > known+maxClaim {
		m.bar(from, fmt.Sprintf("it claims to have promised epoch %d, after %d", epoch, known))
		return
	}
	m.heard = max(m.heard, epoch)
}

// bar keeps a peer out of new worlds for a while. The lock is held.
func (m *Mesh) bar(id peer.ID, fault string) {
	c := m.contact(id)
	c.barred, c.fault = time.Now().Add(barFor), fault
	log.Warnf("mesh %q: %s is kept out for %s: %s", m.config.Name, id, barFor, fault)
}

// settle notes a world that has stood on every rank. The lock is held.
func (m *Mesh) settle(p *past) {
	if !m.memory.settle(p) {
		return
	}
	if err := m.remember(); err != nil { // it is proven anew whenever it matters
		log.Warnw("cannot remember a world", "epoch", p.Epoch, "err", err)
	}
}
