package mesh

import (
	"context"
	"errors"
	"slices"
	"time"

	"peermesh/node"
)

// commit makes a proposal that all have acknowledged the current world. holds says that
// this peer is known to have what the world goes on from. It fails if the promise was not
// kept up, as when the mesh is closing, or a fellow member's stream was quicker than the
// verdict.
func (m *Mesh) commit(p *proposal, holds bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.current; holds && w != nil && w.roster.Digest == p.roster.Digest {
		w.holds = true
		m.memory.had(w.roster)
	}
	if m.promise != p || m.fatal != nil || p.roster.Epoch != m.memory.Promised {
		return false
	}
	m.promise = nil
	w := newWorld(m.node, m.config, p, m.self.ID)
	w.pace = &m.pace
	w.holds = holds || !m.config.Carries
	w.stand = func() ([]byte, error) { return m.stand(w) }
	w.stood = func(stands [][]byte) { m.stood(w, stands) }
	w.carried = func() { m.carried(w) }
	w.advanced = func() { m.advanced(w) }
	m.current = w
	clear(m.twins)
	m.kept = nil
	for _, a := range p.members {
		m.former[a.ID] = a
		if m.config.State != "" {
			m.kept = append(m.kept, a.raw)
		}
		if c := m.contacts[a.ID]; c != nil {
			c.asks = false
		}
	}
	m.wg.Go(func() {
		w.run()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.over(w)
	})
	m.announceChange()
	log.Infof("mesh %q: world %d: this peer is rank %d of %d", m.config.Name, w.Epoch(), w.rank, w.Size())
	return true
}

// stand notes that a world stands here, and says so under our name.
func (m *Mesh) stand(w *World) ([]byte, error) {
	sig, err := signStand(m.node.Host().Peerstore().PrivKey(m.self.ID), w.roster.Digest)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.memory.stand(w.roster, w.holds); err != nil {
		return nil, err
	}
	if !m.config.Carries {
		m.memory.advance(w.roster)
	}
	m.attempts, m.declined = 0, ""
	return sig, m.remember()
}

// stood notes that a world stands on every rank.
func (m *Mesh) stood(w *World, stands [][]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settle(&past{roster: w.roster, Stands: slices.Clone(stands)})
}

// carried notes that this peer has what the others had when a world began. It need not
// outlast this process, which what was carried does not.
func (m *Mesh) carried(w *World) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.memory.carried(w.roster)
}

// advanced notes that more was done in a world than before it. If it matters it outlasts
// this process, of which others are told who may wait for one that is gone for good.
func (m *Mesh) advanced(w *World) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.memory.advance(w.roster) {
		return
	}
	if err := m.remember(); err != nil {
		log.Warnw("cannot remember that a world has got on", "epoch", w.Epoch(), "err", err)
	}
}

// over draws the conclusions from the end of a world. The lock is held.
func (m *Mesh) over(w *World) {
	now := time.Now()
	m.settled = now.Add(settleTime)
	if m.fatal == nil {
		for _, id := range w.roster.Members {
			m.contact(id).next = now // look around at once
		}
	}
	if e := (*EndedError)(nil); errors.As(context.Cause(w.ctx), &e) && e.Peer != m.self.ID {
		m.blame(e, now)
	}
	m.announceChange()
	m.poke()
}

// blame remembers who ended a world, for as long as it matters to the next. The
// lock is held.
func (m *Mesh) blame(e *EndedError, now time.Time) {
	c := m.contact(e.Peer)
	if errors.Is(e, node.ErrViolation) {
		m.bar(e.Peer, e.Err.Error())
	}
	for _, gone := range []error{ErrLost, ErrSilent, ErrAbsent, ErrClosed, ErrLeft} {
		if errors.Is(e, gone) {
			c.met, c.asks, c.trouble = false, false, gone.Error()
			c.fail(now)
		}
	}
	if errors.Is(e, ErrSilent) || errors.Is(e, ErrAbsent) {
		m.sever(e.Peer)
	}
	if !isClosed(m.current.linked) {
		m.declined = e.Error()
	}
}
