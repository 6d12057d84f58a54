package gpu

import "slices"

// A Seat says where a rank is: on which host, by a name that its neighbours have proved
// (see Witness), and on which GPU.
type Seat struct {
	Host string
	GPU  [16]byte // its UUID, Info.UUID; zero for a rank without one
}

// A Site is a host with those of the ranks that are on it, by GPU.
type Site struct {
	Host  string
	Units []Unit
}

// A Unit is a GPU with the ranks that share it, in ascending order, or the ranks of a
// host that have none. NCCL takes one rank a GPU, so the first speaks for the others:
// they reduce to it before, and have the result from it after.
type Unit struct {
	GPU   [16]byte
	Ranks []int
}

// Head is the rank that speaks for the unit.
func (u Unit) Head() int { return u.Ranks[0] }

// Device reports whether the unit is a GPU, which a communicator can have as a member.
func (u Unit) Device() bool { return u.GPU != [16]byte{} }

// Heads are the ranks of a site that speak for its GPUs: the members of its
// communicator, whose ranks are their places here.
func (s Site) Heads() (heads []int) {
	for _, u := range s.Units {
		if u.Device() {
			heads = append(heads, u.Head())
		}
	}
	return heads
}

// Arrange groups ranks by host and GPU. seats has a seat a rank. Sites, and units within
// one, are in the order of their first ranks, so that all ranks that know of the same
// seats find the same.
func Arrange(seats []Seat) []Site {
	var sites []Site
	for rank, seat := range seats {
		i := slices.IndexFunc(sites, func(s Site) bool { return s.Host == seat.Host })
		if i < 0 {
			i = len(sites)
			sites = append(sites, Site{Host: seat.Host})
		}
		s := &sites[i]
		k := slices.IndexFunc(s.Units, func(u Unit) bool { return u.GPU == seat.GPU })
		if k < 0 {
			k = len(s.Units)
			s.Units = append(s.Units, Unit{GPU: seat.GPU})
		}
		s.Units[k].Ranks = append(s.Units[k].Ranks, rank)
	}
	return sites
}
