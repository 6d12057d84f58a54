package mesh

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// World is the current epoch or, if that has ended and was returned before, the
// next one. It waits, at most Config.Wait, until all members are linked to each
// other; the error says who was there and what stood in the way.
//
// Each epoch that stood here is returned once even if it has ended in the
// meantime, so that the cause is not lost: the World's methods return it. One in
// which a member did not link up is not; the next is tried.
func (m *Mesh) World(ctx context.Context) (*World, error) {
	timeout := time.NewTimer(m.config.Wait)
	defer timeout.Stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting++
	defer func() { m.waiting-- }()
	m.poke()
	for {
		if m.fatal != nil {
			return nil, m.fatal
		}
		linked := make(<-chan struct{}) // never
		if w := m.current; w != nil && (w.roster.Epoch > m.delivered || w.ctx.Err() == nil) {
			if isClosed(w.linked) {
				m.delivered = w.roster.Epoch
				return w, nil
			}
			linked = w.linked // or it ends before, and another follows
		}
		changed := m.changed
		m.mu.Unlock()
		var err error
		select {
		case <-linked:
		case <-changed:
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-timeout.C:
			err = fmt.Errorf("%w in %s", ErrNoWorld, m.config.Wait)
		}
		m.mu.Lock()
		if err != nil {
			return nil, m.noWorld(err)
		}
	}
}

// noWorld adds the reason that a person needs. The lock is held.
func (m *Mesh) noWorld(err error) error {
	if !errors.Is(err, ErrNoWorld) {
		err = fmt.Errorf("mesh: waiting for a world: %w", err)
	}
	return fmt.Errorf("%w: %s", err, decide(m.situation(), time.Now()).Reason())
}

// Leave parts from the others as friends: what this peer has sent is delivered,
// and the others' world goes on until one of them needs this peer. It waits until
// they have taken all messages, at most ten seconds or until ctx ends, and then
// closes the mesh either way. The error says who has not, or how the world ended.
func (m *Mesh) Leave(ctx context.Context) error {
	m.mu.Lock()
	w := m.current
	m.mu.Unlock()
	var err error
	if w != nil && w.ctx.Err() == nil {
		err = w.leave(ctx)
	}
	if err == nil {
		err = m.forget()
	}
	return errors.Join(err, m.Close())
}

// Close ends this peer's part in the mesh at once, and waits for everything that
// belongs to it. A world that still goes on ends on every rank, with ErrClosed
// and this rank. Later calls return the result of the first. Close the mesh
// before its node, or the others will take this peer for dead.
func (m *Mesh) Close() error {
	m.once.Do(func() { m.err = m.close() })
	return m.err
}

func (m *Mesh) close() error {
	m.mu.Lock()
	if m.fatal == nil {
		m.fatal = fmt.Errorf("mesh: %w", ErrClosed)
	}
	w := m.current
	m.announceChange()
	m.mu.Unlock()
	if w != nil {
		w.fault(w.rank, ErrClosed)
		<-w.done // within partTimeout
	}
	m.cancel(fmt.Errorf("mesh: %w", ErrClosed))
	for _, stop := range m.stops {
		stop()
	}
	var err error
	m.wg.Wait()
	if m.gossip != nil {
		err = m.gossip.close()
	}
	return err
}
