package mesh

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/libp2p/go-libp2p/core/peer"
)

// A peer that has started again has lost what was done in its worlds before, and one
// that is let into a world has not got it yet. What each has decides who may go on
// without whom.

// A former world is one that a later one went on from, and whether this peer was its
// witness until then.
type former struct {
	roster
	Had bool
}

// revive begins another life: of no world so far is this peer a witness any more.
func (m *memory) revive() {
	m.Born, m.Bare = m.Promised, nil
	for i := range m.Before {
		m.Before[i].Had = false
	}
}

// carried notes that this peer, in a world that it stands in, has been given what was done
// before, by those who had it: of all worlds that this one went on from, too.
func (m *memory) carried(r roster) {
	if m.votes(r) {
		m.Born = 0
		m.Bare = slices.DeleteFunc(m.Bare, func(e uint64) bool { return e <= r.Epoch })
	}
}

// had notes that this peer has had what a world goes on from all along.
func (m *memory) had(r roster) {
	m.Bare = slices.DeleteFunc(m.Bare, func(e uint64) bool { return e == r.Epoch })
}

// witness reports whether the peer has what was done in a world up to its end: it was in
// it, has lived on since, and had what went before.
func (m *memory) witness(r roster) bool {
	if i := slices.IndexFunc(m.Before, func(f former) bool { return f.Digest == r.Digest }); i >= 0 {
		return m.Before[i].Had
	}
	return m.votes(r) && r.Epoch > m.Born && !slices.Contains(m.Bare, r.Epoch)
}

// holds reports whether the peer is a witness of all these worlds.
func (m *memory) holds(worlds []roster) bool {
	return !slices.ContainsFunc(worlds, func(r roster) bool { return !m.witness(r) })
}

// succeed keeps the worlds that p went on from, and those before: if all members of p lose
// what was done, somebody who was cut off may have as much. A world whose members are all
// in p is none of these.
func (m *memory) succeed(p *past) {
	if m.Last != nil {
		m.Before = append(m.Before, former{m.Last.roster, m.witness(m.Last.roster)})
	}
	for _, r := range m.Doubt {
		if r.Epoch < p.Epoch {
			m.Before = append(m.Before, former{r, m.witness(r)})
		}
	}
	m.Before = latest(m.Before, func(f former) int { return len(f.Members) })
	for len(m.Before) > 0 && (m.Before[0].Epoch < m.Ahead || m.Before[0].within(p.roster)) {
		m.Before = m.Before[1:]
	}
}

// within reports whether all members of a roster are in another.
func (r roster) within(of roster) bool {
	return !slices.ContainsFunc(r.Members, func(id peer.ID) bool { return of.rank(id) < 0 })
}

// advance notes that all members of a world that this peer stands in have done more than
// was done before it. Whoever has only that has nothing that anybody needs to wait for. It
// reports whether that forgets something.
func (m *memory) advance(r roster) bool {
	if !m.votes(r) || r.Epoch <= m.Ahead {
		return false
	}
	m.Ahead = r.Epoch
	n := len(m.Before)
	m.Before = slices.DeleteFunc(m.Before, func(f former) bool { return f.Epoch < m.Ahead })
	return len(m.Before) < n
}

// A witnessError says which world is remembered here only by those that have started
// again since, or were let into it and did not get what had been done before.
type witnessError struct{ Of roster }

func (e *witnessError) Error() string {
	return fmt.Sprintf("all who are here of world %d have started again since, or had just been let in, and what it had learned is with the others: %s",
		e.Of.Epoch, names(e.Of.Members))
}

// witnessed reports whether one of the peers with these memories is a witness of a world,
// and so has what was done in it. If none is, but all its members are here, it is lost,
// and there is nobody to wait for.
func witnessed(of roster, minds map[peer.ID]*memory) (has bool, err error) {
	for _, id := range of.Members {
		if m := minds[id]; m != nil && m.witness(of) {
			return true, nil
		}
	}
	if !slices.ContainsFunc(of.Members, func(id peer.ID) bool { return minds[id] == nil }) {
		return false, nil
	}
	return false, &witnessError{of}
}

// remains reports whether those who are here, when all that was done in the last world is
// lost, have what was done in the ones before as far as anybody may have it.
func remains(minds map[peer.ID]*memory) error {
	ahead := uint64(0)
	worlds := make(map[digest]roster)
	for _, m := range minds {
		ahead = max(ahead, m.Ahead)
		for _, f := range m.Before {
			worlds[f.Digest] = f.roster
		}
	}
	for _, r := range slices.SortedFunc(maps.Values(worlds), func(a, b roster) int { return cmp.Compare(b.Epoch, a.Epoch) }) {
		if r.Epoch < ahead {
			return nil
		}
		if has, err := witnessed(r, minds); has || err != nil {
			return err
		}
	}
	return nil
}
