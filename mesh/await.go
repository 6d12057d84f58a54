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
