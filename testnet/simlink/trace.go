package simlink

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// An Event is something that happened on a network.
type Event struct {
	At time.Duration // since the network began
	// Kind is that of the packet that landed (dial, accept, refuse, data, end,
	// reset, window, close), or the name of a fault.
	Kind     string
	From, To int
	Conn     uint64 // counted by the host that dialled; 0: none
	Stream   uint64 // counted by the connection; 0: none
	Bytes    int    // of payload
}

// String is one line without its end, such as
// "1.000052ms 0→1 data conn 1 stream 3, 512 bytes".
func (e Event) String() string {
	s := fmt.Sprintf("%v %d→%d %s", e.At, e.From, e.To, e.Kind)
	if e.Conn > 0 {
		s += fmt.Sprintf(" conn %d", e.Conn)
	}
	if e.Stream > 0 {
		s += fmt.Sprintf(" stream %d", e.Stream)
	}
	if e.Bytes > 0 {
		s += fmt.Sprintf(", %d bytes", e.Bytes)
	}
	return s
}

// trace tells the one who wants to know. The lock is held.
func (n *Network) trace(e Event) {
	if n.config.Trace != nil {
		e.At = n.now()
		n.config.Trace(e)
	}
}

// Count is what has landed over one direction between two hosts.
type Count struct {
	From, To int
	Packets  int64
	Bytes    int64 // of payload
}

func (c *Count) add(bytes int) {
	c.Packets++
	c.Bytes += int64(bytes)
}

// Counts are those of every direction that was used, by From and then To.
func (n *Network) Counts() []Count {
	n.mu.Lock()
	defer n.mu.Unlock()
	var counts []Count
	for _, w := range n.ways {
		if w.count.Packets > 0 {
			c := w.count
			c.From, c.To = w.from.index, w.to.index
			counts = append(counts, c)
		}
	}
	slices.SortFunc(counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return counts
}
