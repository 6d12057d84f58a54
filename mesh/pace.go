package mesh

import (
	"sync"
	"time"
)

const (
	// crowded is how many peers, if they share a machine, take twice as long as a few.
	crowded = 64
	// paceMost bounds a meeting, however long others have taken.
	paceMost = time.Minute
	// pacePatience is by how much a meeting may take longer than those before.
	pacePatience = 4
)

// A pace learns how long meetings may take. Where a machine runs more peers than it has
// the processors for, all are slow at once. Peers that gave each other up then, and cut
// their connections, would only make more work of the same kind, and might never meet.
// Like a pulse's, the estimate rises at once and falls slowly; only meetings that went
// well count, so that the dead do not make it longer.
type pace struct {
	size int // of the world

	mu   sync.Mutex
	slow time.Duration
}

// took takes into account how long a meeting took.
func (p *pace) took(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow = max(d, p.slow-p.slow/16)
}

// timeout bounds the next meeting.
func (p *pace) timeout() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return min(max(crowd(meetTimeout, p.size), pacePatience*p.slow), paceMost)
}

// crowd stretches a time that suits a few peers for as many as may share a machine.
func crowd(d time.Duration, size int) time.Duration {
	return d + d*time.Duration(size)/crowded
}
