package kern

// tileGo is the portable tile: strips of 4×2 elements, as many sums as plain Go
// keeps in registers. The last strip of an odd width overlaps the one before.
func tileGo(a, b []float32, off []int, c0, c1, c2, c3 []float32) {
	start := (*[Rows]float32)(a)
	for j := 0; j < len(c0); j += 2 {
		j := min(j, len(c0)-2)
		s00, s10, s20, s30 := start[0], start[1], start[2], start[3]
		s01, s11, s21, s31 := s00, s10, s20, s30
		bj, a := b[j:], a[Rows:]
		for _, o := range off {
			v, u := (*[2]float32)(bj[o:]), (*[Rows]float32)(a)
			a = a[Rows:]
			s00 += u[0] * v[0]
			s01 += u[0] * v[1]
			s10 += u[1] * v[0]
			s11 += u[1] * v[1]
			s20 += u[2] * v[0]
			s21 += u[2] * v[1]
			s30 += u[3] * v[0]
			s31 += u[3] * v[1]
		}
		c0[j], c0[j+1] = s00, s01
		c1[j], c1[j+1] = s10, s11
		c2[j], c2[j+1] = s20, s21
		c3[j], c3[j+1] = s30, s31
	}
}

// dotGo is the portable dot for rows r and r+1 of A. One lane serves it.
func dotGo(s *Sums, a0, a1, b0, b1, b2 []float32, r int) {
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
	lane := s[3*8*r:]
	for i, v := range [...]float32{s00, s01, s02, s10, s11, s12} {
		lane[8*i] += v
	}
}
