package simlink

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"
)

// A packet is what travels at once. It lands with the network's lock held.
type packet struct {
	way   *way
	n     uint64 // its place on the way
	kind  string
	conn  *conn // the sending end, if it belongs to a connection
	size  int   // payload bytes
	first time.Duration
	land  func()
	key   uint64 // of the stream, for the trace
}

// A dispatch is a packet without place yet: an opening, a close.
type dispatch struct {
	from, to *Host
	p        *packet
}

// post sends a packet that belongs to no stream, at the next flush. The lock is
// held.
func (n *Network) post(from, to *Host, p *packet) {
	n.unsent = append(n.unsent, &dispatch{from, to, p})
	n.flushSoon()
}

// flushSoon plans a flush for when this instant is over. The lock is held.
func (n *Network) flushSoon() { n.flushAt(n.now()) }

// slot is the first instant from t on that is at a place in its tick.
func slot(t, place time.Duration) time.Duration {
	at := t.Truncate(tick) + place
	if at < t {
		at += tick
	}
	return at
}

// flushAt plans a flush for the first such instant after t, unless one is planned
// for earlier. The lock is held.
func (n *Network) flushAt(t time.Duration) {
	at := slot(t+1, flushing)
	if n.closed || n.flush != 0 && n.flush <= at {
		return
	}
	n.flush = at
	n.at(at, func() {
		if n.flush == at {
			n.flush = 0
			n.sendAll()
		}
	})
}

// sendAll gives everything that waits to its uplink, as far as that has room, in
// an order that depends on what there is to send alone.
func (n *Network) sendAll() {
	slices.SortStableFunc(n.unsent, func(a, b *dispatch) int {
		return cmp.Or(cmp.Compare(a.from.index, b.from.index), cmp.Compare(a.to.index, b.to.index), cmp.Compare(a.p.kind, b.p.kind),
			cmp.Compare(a.p.number(), b.p.number()), cmp.Compare(a.p.key, b.p.key))
	})
	slices.SortStableFunc(n.dirty, order)
	streams, packets := n.dirty, n.unsent
	n.dirty, n.unsent = nil, nil
	for _, s := range streams { // named in this order, so that their names are the same in every run
		if s.key == 0 {
			s.conn.pair.streams++
			s.key = s.conn.pair.streams
		}
	}
	// One packet of each stream at a time, and first of those whose turn is longest
	// ago: fair shares, and no queue for those who say little.
	slices.SortStableFunc(streams, func(a, b *stream) int { return cmp.Compare(a.turn, b.turn) })
	for progress := true; progress; {
		progress = false
		for _, s := range streams {
			if s.advance() {
				n.turns++
				s.turn, progress = n.turns, true
			}
		}
	}
	for _, s := range streams {
		switch {
		case s.idle():
			s.queued = false
		case s.stuck(): // until its window opens, which makes it dirty anew
			s.queued = false
		default:
			n.dirty = append(n.dirty, s)
			if h := s.conn.host; !h.frozen {
				n.flushAt(max(h.room(), n.now()))
			}
		}
	}
	for _, d := range packets {
		if d.from.frozen {
			n.unsent = append(n.unsent, d)
			continue
		}
		if d.p.kind == "datagram" {
			n.transmitDatagram(d.from, d.to, d.p)
		} else {
			n.transmit(d.from, d.to, d.p)
		}
	}
}

// order puts streams in the order of hosts, connections and opening; of those that
// opened at one instant, by what they say first.
func order(a, b *stream) int {
	if c := cmp.Or(
		cmp.Compare(a.conn.host.index, b.conn.host.index),
		cmp.Compare(a.conn.peer.host.index, b.conn.peer.host.index),
		cmp.Compare(a.conn.pair.number, b.conn.pair.number)); c != 0 {
		return c
	}
	if a.key != 0 && b.key != 0 {
		return cmp.Compare(a.key, b.key)
	}
	if c := cmp.Compare(b.key, a.key); c != 0 {
		return c // one without a name comes last
	}
	return bytes.Compare(a.opening(), b.opening())
}

// transmit puts a packet on its way. The lock is held.
func (n *Network) transmit(from, to *Host, p *packet) {
	w := n.way(from, to)
	now, size := n.now(), p.size+Header
	p.way, p.n = w, w.sent
	w.sent++
	first, last := from.up.pass(now, now, size)
	first, last = w.pipe.pass(first, last, size)
	delay := w.delay(n.config.Seed, p.n)
	p.first = first + delay
	n.later(last+delay, (*Network).arrive, p)
}

// arrive is when a packet's last bit is at the far end of its way: it then waits
// for those before it, for the end of a cut, and for the downlink.
func (n *Network) arrive(p *packet) {
	w := p.way
	w.early[p.n] = p
	for p = w.early[w.next]; p != nil && !w.cut; p = w.early[w.next] {
		delete(w.early, p.n)
		w.next++
		n.down(p)
	}
}

// resend puts what arrived during a cut on its way once more. The lock is held.
func (n *Network) resend(w *way) {
	now := n.now()
	for _, i := range slices.Sorted(maps.Keys(w.early)) {
		p := w.early[i]
		delete(w.early, i)
		first, last := w.pipe.pass(now, now, p.size+Header)
		p.first = first + w.link.Latency
		n.later(last+w.link.Latency, (*Network).arrive, p)
	}
}

// down brings a packet through its receiver's downlink. No two land at one host at
// the same instant.
func (n *Network) down(p *packet) {
	h, now := p.way.to, n.now()
	_, last := h.down.pass(min(p.first, now), now, p.size+Header)
	last = slot(max(last, h.landed+1), h.place())
	h.landed = last
	if last <= now {
		n.deliver(p)
		return
	}
	n.later(last, (*Network).deliver, p)
}

// deliver lets a packet land, unless its host is stopped.
func (n *Network) deliver(p *packet) {
	h := p.way.to
	if h.frozen {
		h.held = append(h.held, p)
		return
	}
	p.way.count.add(p.size)
	n.trace(Event{Kind: p.kind, From: p.way.from.index, To: h.index, Conn: p.number(), Stream: p.key, Bytes: p.size})
	p.land()
}

func (p *packet) number() uint64 {
	if p.conn == nil {
		return 0
	}
	return p.conn.pair.number
}
