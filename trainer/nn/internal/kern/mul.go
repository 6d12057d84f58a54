package kern

// A tile of Mul is Rows×Cols elements.
const (
	Rows = 4
	Cols = 24
)

// A Packed is a matrix laid out as Mul reads its left factor: panels of four
// rows, each column of a panel together, behind four floats that the panel's
// sums start from. The last panel repeats the last row until it is full, so the
// kernel needs no case for fewer rows: it stores the last one several times.
type Packed struct {
	data []float32
	m, k int
}

// Reset makes p an m×k matrix of undefined elements whose sums start from zero.
// It allocates only to grow.
func (p *Packed) Reset(m, k int) {
	n := (m + Rows - 1) / Rows * Rows * (k + 1)
	if cap(p.data) < n {
		p.data = make([]float32, n)
	}
	p.data, p.m, p.k = p.data[:n], m, k
	for t := 0; t < m; t += Rows {
		clear(p.panel(t)[:Rows])
	}
}

// Set fills the n columns from column at: element (r, at+j) is src[r*rs+j*cs].
func (p *Packed) Set(at, n int, src []float32, rs, cs int) {
	for t := 0; t < p.m; t += Rows {
		panel := p.panel(t)[Rows*(1+at):][:Rows*n]
		for r := range Rows {
			for j, i := r, min(t+r, p.m-1)*rs; j < len(panel); j, i = j+Rows, i+cs {
				panel[j] = src[i]
			}
		}
	}
}

// Start makes the sums of row r start from bias[r].
func (p *Packed) Start(bias []float32) {
	for t := 0; t < p.m; t += Rows {
		for r := range Rows {
			p.panel(t)[r] = bias[min(t+r, p.m-1)]
		}
	}
}

// panel is the one that starts with row t, a multiple of Rows.
func (p *Packed) panel(t int) []float32 { return p.data[t*(p.k+1) : (t+Rows)*(p.k+1)] }

// Mul sets C = start + A·B. C has A's rows, row r at c[r*ldc:], and n columns; row i
// of B starts at b[rows.At(i)]. An element's sum runs over the
// rows of B in order. The last tile of a row overlaps the one before it rather
// than reach past the end; a C narrower than one tile is left to Portable.
func (e Engine) Mul(c []float32, ldc, n int, a *Packed, b []float32, rows Offsets) {
	if rows.Len() != a.k || a.k == 0 {
		panic("kern: the factors of a product do not fit")
	}
	if n < Cols {
		e = Portable
	}
	w, last := min(n, Cols), a.m-1
	for j := 0; j < n; j += w {
		j := min(j, n-w)
		for t := 0; t < a.m; t += Rows {
			e.tile(w, a.panel(t), b[j:], rows,
				c[t*ldc+j:], c[min(t+1, last)*ldc+j:], c[min(t+2, last)*ldc+j:], c[min(t+3, last)*ldc+j:])
		}
	}
}

// Panel is Mul for the four rows from t on, a multiple of Rows, and at most Cols columns:
// row t+r of the product goes to c[r*ldc:]. Where A has fewer rows left, its last one
// stands in for those that c then has too many.
func (e Engine) Panel(c []float32, ldc, n int, a *Packed, t int, b []float32, rows Offsets) {
	if rows.Len() != a.k || a.k == 0 || n > Cols {
		panic("kern: the factors of a product do not fit")
	}
	if n < Cols {
		e = Portable
	}
	e.tile(n, a.panel(t), b, rows, c, c[ldc:], c[2*ldc:], c[3*ldc:])
}

// Prefetch has the memory of four rows of Cols elements, row r at c[r*ldc:], brought near,
// for it is about to be written: what is stored far away else holds up all that is stored
// after it. It is but a hint, and rows past the end of c do no harm.
func (e Engine) Prefetch(c []float32, ldc int) {
	if e == AVX2 && len(c) > 0 {
		prefetchAVX2(ldc, &c[0])
	}
}

// tile sets the first w elements of c0 … c3. Assembly trusts its pointers, so
// this is where their bounds are checked.
func (e Engine) tile(w int, a, b []float32, rows Offsets, c0, c1, c2, c3 []float32) {
	b = first(rows.last+w, b)
	c0, c1, c2, c3 = first(w, c0), first(w, c1), first(w, c2), first(w, c3)
	if e == Portable {
		tileGo(a, b, rows.at, c0, c1, c2, c3)
		return
	}
	tileAVX2(len(rows.at), &a[0], &b[0], &rows.at[0], &c0[0], &c1[0], &c2[0], &c3[0])
}

// first is the first n > 0 elements of x. Slicing alone would look at x's capacity.
func first(n int, x []float32) []float32 {
	_ = x[n-1]
	return x[:n]
}

// tileGo works in strips of 4×2 elements, as many sums as plain Go keeps in
// registers. The last strip of an odd width overlaps the one before.
func tileGo(a, b []float32, off []int, c0, c1, c2, c3 []float32) {
	if len(c0) == 1 {
		columnGo(a, b, off, c0, c1, c2, c3)
		return
	}
	start := (*[Rows]float32)(a)
	for j := 0; j < len(c0); j += 2 {
		j := min(j, len(c0)-2)
		s00, s10, s20, s30 := start[0], start[1], start[2], start[3]
		s01, s11, s21, s31 := s00, s10, s20, s30
		b, a := b[j:], a[Rows:]
		for _, o := range off {
			v, u := (*[2]float32)(b[o:]), (*[Rows]float32)(a)
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

// columnGo is tileGo for a single column.
func columnGo(a, b []float32, off []int, c0, c1, c2, c3 []float32) {
	s := *(*[Rows]float32)(a)
	for i, o := range off {
		for r, u := range (*[Rows]float32)(a[Rows*(1+i):]) {
			s[r] += u * b[o]
		}
	}
	c0[0], c1[0], c2[0], c3[0] = s[0], s[1], s[2], s[3]
}
