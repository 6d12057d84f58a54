package simlink

import (
	"errors"
	"fmt"
	"syscall"
)

// ErrKilled is why nothing works any more on a host that was killed.
var ErrKilled = errors.New("simlink: host killed")

// errSilent breaks a connection whose other end has not answered for too long.
var errSilent = fmt.Errorf("simlink: no answer: %w", syscall.ETIMEDOUT)

// change runs a fault under the lock, with the hosts that it concerns, and says so
// in the trace.
func (n *Network) change(kind string, from, to int, do func()) {
	n.Host(from)
	n.Host(to)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	n.trace(Event{Kind: kind, From: from, To: to})
	do()
}

// Kill ends the process on a host at once, as SIGKILL does: what it has written
// still leaves, its connections break everywhere, and dials to it are refused. Its
// node can do nothing any more and should be closed.
func (n *Network) Kill(host int) {
	n.change("kill", host, host, func() {
		h := n.hosts[host]
		if !h.dead {
			h.dead = true
			h.shut(ErrKilled)
		}
	})
}

// Restart makes a killed host ready for a new node with the same identity and
// address.
func (n *Network) Restart(host int) {
	n.change("restart", host, host, func() { n.hosts[host].dead = false })
}

// Freeze stops a host: from now on nothing that it writes leaves and nothing that
// arrives is read, while its connections stay, for Config.Patience. Its goroutines
// run on, for they share the clock of this process: unlike one that has got SIGSTOP
// a frozen process sees the others fall silent.
func (n *Network) Freeze(host int) {
	n.change("freeze", host, host, func() {
		h := n.hosts[host]
		if h.frozen || h.dead {
			return
		}
		h.frozen = true
		h.freezes++
		count := h.freezes
		n.at(n.now()+n.config.Patience, func() {
			if h.frozen && h.freezes == count {
				for _, c := range h.connections() {
					c.peer.shut(0, errSilent)
				}
			}
		})
	})
}

// Thaw lets a frozen host go on: all that waited is read and sent now.
func (n *Network) Thaw(host int) {
	n.change("thaw", host, host, func() {
		h := n.hosts[host]
		if !h.frozen {
			return
		}
		h.frozen = false
		held := h.held
		h.held = nil
		for _, p := range held {
			p.first = n.now()
			n.down(p)
		}
		n.flushSoon()
	})
}

// Cut makes the ways between two hosts swallow everything, without a word to
// either. What is sent meanwhile arrives after Heal, as senders repeat themselves,
// unless Config.Patience runs out before and breaks the connections.
func (n *Network) Cut(a, b int) {
	n.change("cut", a, b, func() {
		for _, w := range n.both(a, b) {
			if w.cut {
				continue
			}
			w.cut = true
			w.cuts++
			count := w.cuts
			n.at(n.now()+n.config.Patience, func() {
				if w.cut && w.cuts == count {
					n.giveUp(w)
				}
			})
		}
	})
}

// giveUp breaks the connections at a way's beginning. The lock is held.
func (n *Network) giveUp(w *way) {
	for _, c := range w.from.connections() {
		if c.peer.host == w.to {
			c.shut(0, errSilent)
		}
	}
}

// Heal is the reverse of Cut.
func (n *Network) Heal(a, b int) {
	n.change("heal", a, b, func() {
		for _, w := range n.both(a, b) {
			if w.cut {
				w.cut = false
				n.resend(w)
			}
		}
	})
}

// Split cuts every host of a side from every host of another. A host on no side
// keeps all its ways.
func (n *Network) Split(sides ...[]int) { n.between(sides, n.Cut) }

// Join heals what Split with the same sides has cut.
func (n *Network) Join(sides ...[]int) { n.between(sides, n.Heal) }

func (n *Network) between(sides [][]int, f func(a, b int)) {
	for i, side := range sides {
		for _, other := range sides[:i] {
			for _, a := range side {
				for _, b := range other {
					f(a, b)
				}
			}
		}
	}
}

// SetLink makes the ways between two hosts another kind of link, for what is sent
// from now on.
func (n *Network) SetLink(a, b int, l Link) {
	n.change("link", a, b, func() {
		for _, w := range n.both(a, b) {
			w.link, w.pipe.rate = l, l.Rate
		}
	})
}

// Shape gives a host other rates, for what is sent from now on.
func (n *Network) Shape(host int, p Port) {
	n.change("shape", host, host, func() { n.hosts[host].shape(p) })
}
