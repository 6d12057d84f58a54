package simlink

import "time"

// An event is something to be done at an instant, with the network's lock held: to a
// packet, as most are, or whatever do alone knows of.
type event struct {
	at  time.Duration // since the network began
	seq uint64        // events of one instant happen in the order in which they were planned
	do  func(*Network, *packet)
	p   *packet
}

func (e *event) before(f *event) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

// events is a heap: each is before those at twice its place and one or two more. That of
// container/heap would put each event into an interface, which is most of its cost.
type events []event

// add puts an event at its place.
func (e *events) add(x event) {
	*e = append(*e, x)
	q := *e
	for i := len(q) - 1; i > 0; {
		over := (i - 1) / 2
		if !q[i].before(&q[over]) {
			break
		}
		q[i], q[over] = q[over], q[i]
		i = over
	}
}

// take removes the first event. There must be one.
func (e *events) take() event {
	q := *e
	first, last := q[0], len(q)-1
	q[0], q[last] = q[last], event{}
	q = q[:last]
	*e = q
	for i := 0; ; {
		next := i
		for _, under := range [...]int{2*i + 1, 2*i + 2} {
			if under < last && q[under].before(&q[next]) {
				next = under
			}
		}
		if next == i {
			return first
		}
		q[i], q[next] = q[next], q[i]
		i = next
	}
}

// at plans an event. The lock is held.
func (n *Network) at(at time.Duration, do func()) {
	n.later(at, func(*Network, *packet) { do() }, nil)
}

// later plans what is to be done to a packet. The lock is held.
func (n *Network) later(at time.Duration, do func(*Network, *packet), p *packet) {
	n.planned++
	n.queue.add(event{at, n.planned, do, p})
	n.arm()
}

// arm sets the timer for the next event. The lock is held.
func (n *Network) arm() {
	if n.closed || len(n.queue) == 0 {
		return
	}
	if next := n.queue[0].at; !n.armed || next < n.alarm {
		n.armed, n.alarm = true, next
		n.timer.Reset(next - n.now())
	}
}

// loop lets the events happen. It is the one goroutine of a network.
func (n *Network) loop() {
	defer close(n.done)
	for {
		select {
		case <-n.stop:
			return
		case <-n.timer.C:
		}
		n.mu.Lock()
		n.armed = false
		for now := n.now(); len(n.queue) > 0 && n.queue[0].at <= now && !n.closed; {
			e := n.queue.take()
			e.do(n, e.p)
		}
		n.arm()
		n.mu.Unlock()
	}
}

func (n *Network) now() time.Duration { return time.Since(n.start) }
