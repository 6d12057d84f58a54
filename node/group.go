package node

import "sync"

// A group is a WaitGroup that can be closed: once someone waits, nothing more
// begins, so no Add can race with the Wait.
type group struct {
	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// enter reports whether a member may begin; it then must call leave.
func (g *group) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.wg.Add(1)
	return true
}

func (g *group) leave() { g.wg.Done() }

// close admits nobody more; wait returns when all have left.
func (g *group) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
}

func (g *group) wait() {
	g.close()
	g.wg.Wait()
}
