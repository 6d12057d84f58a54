package simlink

import (
	"container/heap"
	"time"
)

// An event is something to be done at an instant, with the network's lock held.
type event struct {
	at  time.Duration // since the network began
	seq uint64        // events of one instant happen in the order in which they were planned
	do  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	old[len(old)-1] = event{}
	*e = old[:len(old)-1]
	return last
}

// at plans an event. The lock is held.
func (n *Network) at(at time.Duration, do func()) {
	n.planned++
	heap.Push(&n.queue, event{at, n.planned, do})
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
			heap.Pop(&n.queue).(event).do()
		}
		n.arm()
		n.mu.Unlock()
	}
}

func (n *Network) now() time.Duration { return time.Since(n.start) }
