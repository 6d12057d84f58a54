package layers

// How work and sums are cut.
//
// A job over n samples, rows or channels has min(n, parts) parts of nearly equal
// length, and a sum over samples is taken within each part, in order, and then
// over the parts, in order. The cut depends on n alone, so the bits of a result do
// not depend on threads.

// parts is how many parts a job has at most; more threads than that are idle.
const parts = 16

// cut is the number of parts of a job over n.
func cut(n int) int { return min(n, parts) }

// bounds are those of a part, [lo, hi).
func bounds(n, part int) (lo, hi int) {
	k := cut(n)
	return n * part / k, n * (part + 1) / k
}

// grow is s with n elements, undefined; it allocates only to get larger.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		s = make([]T, n)
	}
	return s[:n]
}

// A folding adds up the parts' sums of a parameter's gradient. A Net has one, for
// the layer that goes backward.
type folding struct {
	rows  []float32 // each part's, width floats apart
	width int
	n     int       // rows
	at    int       // where in a row dst's floats are
	dst   []float32 // their sum
	job   func(worker, part int)
}

// shares is room for the sums of k parts, undefined.
func (p *Pass) shares(k, width int) *folding {
	f := &p.net.fold
	f.rows, f.width, f.n = grow(f.rows, k*width), width, k
	return f
}

// row is a part's room.
func (f *folding) row(part int) []float32 { return f.rows[part*f.width:][:f.width] }

// into sets dst to the sum of the parts' floats from at on.
func (f *folding) into(p *Pass, dst []float32, at int) {
	clear(dst)
	f.dst, f.at = dst, at
	p.Each(cut(len(dst)), f.job)
}

func (f *folding) part(_, part int) {
	lo, hi := bounds(len(f.dst), part)
	dst := f.dst[lo:hi]
	for r := range f.n {
		for i, v := range f.rows[r*f.width+f.at+lo:][:len(dst)] {
			dst[i] += v
		}
	}
}
