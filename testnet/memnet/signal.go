package memnet

import (
	"fmt"
	"slices"
	"sync"
)

// A mailbox is one rank's signals and their handlers. A goroutine delivers as
// long as there is something to deliver, and no longer.
type mailbox struct {
	mu       sync.Mutex
	handlers map[uint32]func(int, []byte)
	queue    []signal
	busy     bool
}

type signal struct {
	from    int
	channel uint32
	p       []byte
}

// Signal sends a few bytes to a rank; see ops.Transport.
func (w *World) Signal(to int, channel uint32, p []byte) error {
	if len(p) > maxSignal {
		return fmt.Errorf("memnet: signal of %d bytes: at most %d", len(p), maxSignal)
	}
	if to < 0 || to >= w.net.size || to == w.rank {
		return fmt.Errorf("memnet: no signal from rank %d to %d in a world of %d", w.rank, to, w.net.size)
	}
	m := &w.net.mailbox[to]
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) == maxSignals {
		return nil // far behind: dropped, as the contract allows
	}
	m.queue = append(m.queue, signal{w.rank, channel, slices.Clone(p)})
	if !m.busy {
		m.busy = true
		go m.deliver()
	}
	return nil
}

// OnSignal sets the handler of a channel; see ops.Transport.
func (w *World) OnSignal(channel uint32, f func(from int, p []byte)) {
	m := &w.net.mailbox[w.rank]
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handlers == nil {
		m.handlers = make(map[uint32]func(int, []byte))
	}
	m.handlers[channel] = f
}

func (m *mailbox) deliver() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.queue) > 0 {
		s := m.queue[0]
		m.queue = m.queue[1:]
		if f := m.handlers[s.channel]; f != nil {
			m.mu.Unlock()
			f(s.from, s.p)
			m.mu.Lock()
		}
	}
	m.busy = false
}
