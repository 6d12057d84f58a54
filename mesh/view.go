package mesh

import (
	"maps"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// maxKnown bounds the peers that a view holds.
const maxKnown = 2 * MaxWorld

// A view is the set of peers that announced themselves in one mesh. Views merge
// like sets: in any order, any number of times, with the same result. Per peer
// the newest announcement stands, and of too many peers the lowest IDs stay; the
// second rule looks at IDs alone because an order by anything that changes would
// make the result depend on the order of arrival.
type view map[peer.ID]*announcement

// add merges one announcement and reports whether that changed the view.
func (v view) add(a *announcement) bool {
	if old := v[a.ID]; old != nil {
		if !a.newer(old) {
			return false
		}
		v[a.ID] = a
		return true
	}
	v[a.ID] = a
	if len(v) <= maxKnown {
		return true
	}
	last := slices.Max(slices.Collect(maps.Keys(v)))
	delete(v, last)
	return last != a.ID
}

// expire forgets what is past its time, and reports whether anything was.
func (v view) expire(now time.Time) bool {
	before := len(v)
	maps.DeleteFunc(v, func(_ peer.ID, a *announcement) bool { return !a.Expires.After(now) })
	return len(v) < before
}

// byAge lists the view, longest-joined first, ties by ID: the order in which
// peers have a claim to a place in a world.
func (v view) byAge() []*announcement {
	return slices.SortedFunc(maps.Values(v), func(a, b *announcement) int {
		if c := a.Since.Compare(b.Since); c != 0 {
			return c
		}
		return compareID(a.ID, b.ID)
	})
}

// compareID orders peers: by the bytes of their IDs, which for Ed25519 is also
// the order of their text.
func compareID(a, b peer.ID) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
