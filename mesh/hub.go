package mesh

import (
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Who proposes a world must have met all its members; nobody else must. In a small
// mesh everyone meets everyone all the same. In one for a world of more than maxFull, n²/2
// meetings would be most of the work of forming a world, so there everyone meets the
// hubs at once, who are the likely proposers, and the rest late: by then there is a
// world, or the hubs are of no use.

const (
	// hubCount is how many peers everyone meets: the one that will propose, and those
	// that take its place.
	hubCount = 3
	// hubPatience is how long a few peers leave it to the hubs.
	hubPatience = 30 * time.Second
)

// hubs are the peers with the lowest IDs among those with a claim to a place, and among
// the members of the last world, less those who cannot be met. Whoever sees fewer peers
// sees more hubs among them, never less, so of every peer and every hub, the one that
// came later to their bootstrap peer looks for the other. In a small mesh there are
// none, and everyone is as good.
func (s situation) hubs(now time.Time) (hubs []peer.ID) {
	if s.World <= maxFull {
		return nil
	}
	claims := s.claims()
	var all, members []peer.ID
	for _, a := range claims[:min(len(claims), s.World)] {
		if c := s.Contacts[a.ID]; c != nil && (c.trouble != "" || now.Before(c.barred)) {
			continue
		}
		all = append(all, a.ID)
		if s.member(a.ID) {
			members = append(members, a.ID)
		}
	}
	for _, ids := range [][]peer.ID{all, members} {
		hubs = append(hubs, lowest(ids, hubCount)...)
	}
	return hubs
}

// lowest are the n lowest of some IDs, in order.
func lowest(ids []peer.ID, n int) (low []peer.ID) {
	for _, id := range ids {
		if i, _ := slices.BinarySearchFunc(low, id, compareID); i < n {
			low = slices.Insert(low, i, id)
			low = low[:min(len(low), n)]
		}
	}
	return low
}

// later is by how much a meeting can wait that is needed only if the hubs fail.
func (s situation) later(hubs []peer.ID, id peer.ID) time.Duration {
	first := slices.ContainsFunc(s.First, func(f peer.AddrInfo) bool { return f.ID == id })
	if hubs == nil || first || slices.Contains(hubs, id) || slices.Contains(hubs, s.Self) {
		return 0
	}
	return crowd(hubPatience, s.World)
}
