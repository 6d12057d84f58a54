package mesh

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// recall reads the state file. One that is damaged, or of another mesh, is as good
// as none: a peer that has forgotten has no say, and does no harm. One of another
// peer is a mistake that somebody should hear of.
func (m *Mesh) recall() error {
	if m.config.State == "" {
		return nil
	}
	s, err := loadState(m.config.State)
	switch {
	case err != nil && errors.As(err, new(*fs.PathError)):
		return err
	case err != nil:
		log.Warnf("mesh %q: this peer starts without memory: %s: %v", m.config.Name, m.config.State, err)
		return nil
	case s == nil:
		return nil
	case s.ID != m.node.ID():
		return fmt.Errorf("mesh: state file %s is that of %s, this peer is %s", m.config.State, s.ID, m.node.ID())
	case s.Mesh != m.config.Name:
		log.Warnf("mesh %q: this peer starts without memory: %s is of mesh %q", m.config.Name, m.config.State, s.Mesh)
		return nil
	}
	m.memory, m.kept = s.Memory, s.Known
	m.memory.revive()
	for _, raw := range s.Known {
		a, err := openAnnouncement(raw)
		if err != nil {
			return fmt.Errorf("mesh: state file %s: %w", m.config.State, err)
		}
		if a.ID != m.node.ID() {
			m.former[a.ID] = a
			m.contact(a.ID)
		}
	}
	return nil
}

// remember writes the state file. The lock is held: nobody may act on a memory that
// could still be lost.
func (m *Mesh) remember() error {
	if m.config.State == "" {
		return nil
	}
	s := state{ID: m.self.ID, Mesh: m.config.Name, Memory: m.memory, Known: m.kept}
	return s.save(m.config.State)
}

// forget removes the state file: a peer that has left owes nothing any more.
func (m *Mesh) forget() error {
	if m.config.State == "" {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	path := m.config.State
	m.config.State = "" // nothing is written any more
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("mesh: state: %w", err)
	}
	return nil
}
