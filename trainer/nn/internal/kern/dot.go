package kern

// Sums are the twelve running products of Dot, each spread over eight lanes that
// only Sum adds up.
type Sums [12 * 8]float32

// Sum is the product of row r (0 … 3) of A and row q (0 … 2) of B.
func (s *Sums) Sum(r, q int) float32 {
	v := (*[8]float32)(s[8*(3*r+q):])
	return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]))
}

// Dot adds to s the dot products of n elements of four rows of A, which start at
// a[ra[0]] … a[ra[3]], with three of B, at b[rb[0]] … b[rb[2]]. Rows may
// coincide.
func (e Engine) Dot(s *Sums, n int, a []float32, ra *[4]int, b []float32, rb *[3]int) {
	if n == 0 {
		return
	}
	// Assembly trusts its pointers, so this is where their bounds are checked.
	a0, a1, a2, a3 := first(n, a[ra[0]:]), first(n, a[ra[1]:]), first(n, a[ra[2]:]), first(n, a[ra[3]:])
	b0, b1, b2 := first(n, b[rb[0]:]), first(n, b[rb[1]:]), first(n, b[rb[2]:])
	if e == Portable {
		dotGo(s, 0, a0, a1, b0, b1, b2)
		dotGo(s, 2, a2, a3, b0, b1, b2)
		return
	}
	dotAVX2(n, &a0[0], &a1[0], &a2[0], &a3[0], &b0[0], &b1[0], &b2[0], s)
}

// dotGo does rows r and r+1 of A, and needs one lane only.
func dotGo(s *Sums, r int, a0, a1, b0, b1, b2 []float32) {
	n := len(a0)
	a1, b0, b1, b2 = a1[:n], b0[:n], b1[:n], b2[:n]
	var s00, s01, s02, s10, s11, s12 float32
	for p, u := range a0 {
		v := a1[p]
		s00 += u * b0[p]
		s01 += u * b1[p]
		s02 += u * b2[p]
		s10 += v * b0[p]
		s11 += v * b1[p]
		s12 += v * b2[p]
	}
	lane := s[8*3*r:]
	for i, v := range [...]float32{s00, s01, s02, s10, s11, s12} {
		lane[8*i] += v
	}
}
