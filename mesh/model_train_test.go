package mesh

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Work is the last of some steps of a training, and so all of them.
type work struct {
	before *work
	epoch  uint64 // of the world that took the step
	steps  int
}

func (w *work) depth() int {
	if w == nil {
		return 0
	}
	return w.steps
}

// beyond reports whether w has more than v: more steps, or of as many the later world's,
// as trainer.Carry has it. What the earlier took was not finished, or the later would
// have gone on from it.
func (w *work) beyond(v *work) bool {
	if w == nil || v == nil {
		return w != nil
	}
	return cmp.Or(cmp.Compare(w.steps, v.steps), cmp.Compare(w.epoch, v.epoch)) > 0
}

// contains reports whether v is w or before it.
func (w *work) contains(v *work) bool {
	for w.depth() > v.depth() {
		w = w.before
	}
	return w == v
}

func newAttempt(r roster, proposer peer.ID) *attempt {
	return &attempt{r: r, proposer: proposer, minds: map[peer.ID]*memory{}, committed: map[peer.ID]bool{}, stood: map[peer.ID]bool{},
		lives: map[peer.ID]int{}, holds: map[peer.ID]bool{}, carried: map[peer.ID]bool{}}
}

// together reports whether a world stood everywhere and nobody has left it.
func (m *model) together(a *attempt) bool {
	return len(a.stood) == len(a.r.Members) && !slices.ContainsFunc(a.r.Members, func(id peer.ID) bool { return m.peers[id].in != a })
}

// train lets a member be given what the others have, and then take steps with them. Both
// are begun by all members, and done by each when it comes to it.
func (m *model) train(a *attempt, id peer.ID) {
	p := m.peers[id]
	switch {
	case p.in != a:
	case !a.carrying:
		m.carry(a)
	case !a.carried[id]:
		p.has, a.carried[id] = a.best, true
		p.mind.carried(a.r)
		m.note("%s has %d steps in %d", id, p.has.depth(), a.r.Epoch)
	case p.has != a.next:
		if p.has = a.next; p.has.before != a.best && m.rng.IntN(2) == 0 {
			p.mind.advance(a.r)
		}
		m.note("%s takes step %d in %d", id, p.has.depth(), a.r.Epoch)
	case len(a.carried) == len(a.r.Members) && m.together(a) && m.all(a, a.next):
		a.next = &work{before: p.has, epoch: a.r.Epoch, steps: p.has.depth() + 1}
	}
	if a.next != nil && a.next.epoch == a.r.Epoch && m.together(a) && m.all(a, a.next) {
		m.finished = a.next
	}
}

// all reports whether all members of a world have the same.
func (m *model) all(a *attempt, w *work) bool {
	return !slices.ContainsFunc(a.r.Members, func(id peer.ID) bool { return m.peers[id].has != w })
}

// carry chooses what a world's members go on with.
func (m *model) carry(a *attempt) {
	if !m.together(a) {
		return
	}
	same := true
	for _, id := range a.r.Members {
		if w := m.peers[id].has; w.beyond(a.best) {
			a.best = w
		}
		same = same && m.peers[id].has == m.peers[a.r.Members[0]].has
	}
	a.carrying, a.next = true, a.best
	if !same {
		m.carries++
	}
	switch {
	case a.best.contains(m.finished):
	case !slices.ContainsFunc(m.ids, func(id peer.ID) bool { return m.peers[id].has.contains(m.finished) }):
		m.note("%d goes on from step %d, and nobody has step %d any more", a.r.Epoch, a.best.depth(), m.finished.depth())
		m.finished = nil
		m.lost++
	// After a loss somebody may come who has more of what was there before it, which will do.
	case m.lost == 0 || a.best.depth() < m.finished.depth():
		m.undone = fmt.Errorf("world %d of %q goes on from step %d, and lacks step %d of world %d",
			a.r.Epoch, a.r.Members, a.best.depth(), m.finished.depth(), m.finished.epoch)
	}
}
