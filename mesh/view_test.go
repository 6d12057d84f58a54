package mesh

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// said is an announcement without a signature: views do not look at it.
func said(id string, since, expires int) *announcement {
	return &announcement{ID: peer.ID(id), Since: time.Unix(int64(since), 0), Expires: time.Unix(int64(expires), 0),
		raw: fmt.Append(nil, id, since, expires)}
}

// Any order and any repetition of the same announcements, in any grouping, gives
// the same view.
func TestViewsMergeLikeSets(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var all []*announcement
		for range 1 + rng.IntN(40) {
			all = append(all, said(fmt.Sprint(rng.IntN(8)), rng.IntN(3), rng.IntN(3)))
		}
		merged := func() view {
			parts := []view{{}, {}, {}}
			for range 1 + rng.IntN(2) {
				for _, i := range rng.Perm(len(all)) {
					parts[rng.IntN(len(parts))].add(all[i])
				}
			}
			rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
			v := view{}
			for _, p := range parts {
				for range 2 {
					for _, a := range p {
						v.add(a)
					}
				}
			}
			return v
		}
		a, b := merged(), merged()
		if !maps.EqualFunc(a, b, func(x, y *announcement) bool { return string(x.raw) == string(y.raw) }) {
			t.Fatalf("seed %d: two orders, two views: %v and %v", seed, a, b)
		}
		for _, x := range all {
			if x.newer(a[x.ID]) {
				t.Fatalf("seed %d: %s is newer than what stands, %s", seed, x.raw, a[x.ID].raw)
			}
		}
	}
}

func TestViewIsBounded(t *testing.T) {
	id := func(i int) string { return fmt.Sprintf("%06d", i) }
	up, down := view{}, view{}
	for i := range maxKnown + 100 {
		if changed := up.add(said(id(i), i, 1)); changed != (i < maxKnown) {
			t.Fatalf("adding peer %d: changed %v", i, changed)
		}
		if !down.add(said(id(maxKnown+99-i), i, 1)) {
			t.Fatalf("a lower ID did not get in")
		}
	}
	if len(up) != maxKnown || !slices.Equal(slices.Sorted(maps.Keys(up)), slices.Sorted(maps.Keys(down))) {
		t.Errorf("%d and %d peers, want the lowest %d", len(up), len(down), maxKnown)
	}
}

func TestViewExpires(t *testing.T) {
	v := view{}
	for i := range 4 {
		v.add(said(fmt.Sprint(i), 0, i))
	}
	v.expire(time.Unix(1, 0))
	if got := slices.Sorted(maps.Keys(v)); !slices.Equal(got, []peer.ID{"2", "3"}) {
		t.Errorf("left: %q", got)
	}
}

func TestByAge(t *testing.T) {
	v := view{}
	for _, a := range []*announcement{said("b", 2, 9), said("c", 1, 9), said("a", 2, 9), said("d", 0, 9), said("d", 3, 9)} {
		v.add(a)
	}
	var got []string
	for _, a := range v.byAge() {
		got = append(got, string(a.ID))
	}
	if want := []string{"c", "a", "b", "d"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q: a restart loses the place", got, want)
	}
}
