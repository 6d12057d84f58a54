package mesh

// routes are the ways that news takes through a world: from each rank a tree of shortest
// ways to all others. Every rank has the same neighbours but for where it stands, so one
// tree serves for all ranks' news, and nobody needs to be told of it. A full world's is a
// star: what a rank says it says to all, and nobody passes it on.
//
// News could as well go to all neighbours from each of them. Nothing would be gained by
// that: a tree breaks where a stream does, and a world in which a stream breaks has ended.
// And it would be 2·log₂ n copies a rank, of which one is of use.
type routes struct {
	steps []int    // how far it is to a rank's neighbours, upwards and modulo the size
	next  []uint32 // by how far news has come: a bit for each of steps that it goes on by
}

// newRoutes searches the neighbourhood of rank 0 breadth first.
func newRoutes(size int) routes {
	r := routes{steps: neighbours(0, size), next: make([]uint32, size)}
	reached := make([]bool, size)
	reached[0] = true
	for at := []int{0}; len(at) > 0; at = at[1:] {
		for i, step := range r.steps {
			if to := (at[0] + step) % size; !reached[to] {
				reached[to] = true
				r.next[at[0]] |= 1 << i
				at = append(at, to)
			}
		}
	}
	return r
}

// on reports whether news about a rank goes by the i-th step from here.
func (r routes) on(here, about, i int) bool {
	size := len(r.next)
	return r.next[(here-about+size)%size]>>i&1 == 1
}
