package mesh

import (
	"fmt"
	"slices"

	"github.com/libp2p/go-libp2p/core/peer"
)

// A quorumError says which world keeps peers from forming the next one.
type quorumError struct {
	Of    roster
	Votes int
}

func (e *quorumError) Error() string {
	n := len(e.Of.Members)
	text := fmt.Sprintf("%d of the %d members of world %d are here and remember it; more than half must", e.Votes, n, e.Of.Epoch)
	if n%2 == 0 {
		text += fmt.Sprintf(", or half with its rank 0, %s", short(e.Of.Members[0]))
	}
	return text
}

// quorum reports whether those who vote may go on from a world: more than half of
// its members, or exactly half with its rank 0. Any two such sets share a member.
func quorum(of roster, votes func(peer.ID) bool) error {
	n := 0
	for _, id := range of.Members {
		if votes(id) {
			n++
		}
	}
	if 2*n > len(of.Members) || 2*n == len(of.Members) && votes(of.Members[0]) {
		return nil
	}
	return &quorumError{of, n}
}

// bases are the worlds that the peers with these memories would go on from: the last
// that any of them knows to have stood, and each later one that may have. A later one of
// which a member is here that never stood in it, and so never will, is out.
func bases(minds map[peer.ID]*memory) (worlds []roster) {
	var last *past
	for _, m := range minds {
		if m.Last != nil && (last == nil || m.Last.Epoch > last.Epoch) {
			last = m.Last
		}
	}
	if last != nil {
		worlds = append(worlds, last.roster)
	}
	for _, m := range minds {
		for _, r := range m.Doubt {
			over := slices.ContainsFunc(r.Members, func(id peer.ID) bool { return minds[id] != nil && minds[id].passedOver(r.Digest) })
			if !over && (last == nil || r.Epoch > last.Epoch) {
				worlds = append(worlds, r)
			}
		}
	}
	return worlds
}

// allows reports whether the peers with these memories may form the next world: they
// must have a quorum and a witness of each world that it goes on from, or else, where all
// that was done in those is lost, of one before.
func allows(minds map[peer.ID]*memory) error {
	worlds, lost := bases(minds), true
	for _, r := range worlds {
		if err := quorum(r, func(id peer.ID) bool { return minds[id] != nil && minds[id].votes(r) }); err != nil {
			return err
		}
		has, err := witnessed(r, minds)
		if err != nil {
			return err
		}
		lost = lost && !has
	}
	if !lost {
		return nil
	}
	return remains(minds)
}

// mayGoOn is allows as far as one peer can judge alone: it takes everyone for
// someone who remembers what it remembers itself.
func (m *memory) mayGoOn(members []peer.ID) error {
	minds := make(map[peer.ID]*memory)
	for _, id := range members {
		minds[id] = &memory{Last: m.Last, Voter: true, Doubt: m.Doubt}
	}
	return allows(minds)
}
