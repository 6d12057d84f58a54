package mesh

import (
	"context"
	"errors"
	"fmt"
)

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
