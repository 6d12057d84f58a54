package kern

// An Engine is one implementation of the kernels. Any machine can run Portable;
// Best says what else this one can. Engines round differently (AVX2 fuses each
// multiplication with its addition), but each always gives the same bits for
// an element, wherever in a tile the element lies.
type Engine uint8

const (
	Portable Engine = iota // plain Go
	AVX2                   // amd64 assembly: 256-bit vectors with FMA
)

// Rows and Cols are the size of a tile of Mul.
const (
	Rows = 4
	Cols = 24
)

// Offsets say where the rows of a matrix start within a slice. They need not be
// evenly spaced, and rows may overlap: that is how a convolution reads shifted
// views of an image as the rows of a matrix without copying one.
type Offsets struct {
	at   []int
	last int // the largest, so that one comparison bounds them all
}

// NewOffsets returns the k offsets at(0) … at(k-1).
func NewOffsets(k int, at func(i int) int) Offsets {
	o := Offsets{at: make([]int, k)}
	for i := range o.at {
		o.at[i] = at(i)
		o.last = max(o.last, o.at[i])
	}
	return o
}

// Len is the number of rows.
func (o Offsets) Len() int { return len(o.at) }

// At is where row i starts.
func (o Offsets) At(i int) int { return o.at[i] }

// First is the first k rows.
func (o Offsets) First(k int) Offsets { return Offsets{o.at[:k], o.last} }

// A Packed is a matrix laid out as Mul reads its left factor: panels of four
// rows, each column of a panel together, behind four floats that the panel's
// sums start from. The last panel repeats the last row until it is full, so the
// kernel computes rows that are not there, and stores the last one repeatedly.
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

// Set fills columns [at, at+n): element (r, at+j) is src[r*rs+j*cs].
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

// panel is the one that holds row t, a multiple of Rows.
func (p *Packed) panel(t int) []float32 { return p.data[t*(p.k+1) : (t+Rows)*(p.k+1)] }

// Mul sets C = start + A·B. C has A's rows, row r at c[r*ldc:], and n columns, at
// least 2; row i of B starts at b[rows.At(i)]. Elements sum over k in order. The
// last tile of a row overlaps the one before it rather than reach past the end;
// a C that is narrower than one tile is left to the portable kernel.
func (e Engine) Mul(c []float32, ldc, n int, a *Packed, b []float32, rows Offsets) {
	if len(rows.at) != a.k {
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

// tile sets the w leading elements of the rows c0 … c3. Assembly trusts its
// pointers, so the bounds are checked here.
func (e Engine) tile(w int, a, b []float32, rows Offsets, c0, c1, c2, c3 []float32) {
	b = b[:rows.last+w]
	c0, c1, c2, c3 = c0[:w], c1[:w], c2[:w], c3[:w]
	if e == Portable {
		tileGo(a, b, rows.at, c0, c1, c2, c3)
		return
	}
	tileAVX2(len(rows.at), &a[0], &b[0], &rows.at[0], &c0[0], &c1[0], &c2[0], &c3[0])
}

// Sums are the twelve running dot products of Dot, each spread over eight lanes
// that only Sum adds up.
type Sums [12 * 8]float32

// Sum is the product of row r (0 … 3) of A and row q (0 … 2) of B.
func (s *Sums) Sum(r, q int) float32 {
	v := (*[8]float32)(s[(3*r+q)*8:])
	return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]))
}

// Dot adds to s the dot products of n elements of four rows of A, which start at
// a[ra[0]] … a[ra[3]], with three of B, at b[rb[0]] … b[rb[2]]. Rows may
// coincide.
func (e Engine) Dot(s *Sums, n int, a []float32, ra *[4]int, b []float32, rb *[3]int) {
	if n == 0 {
		return
	}
	a0, a1, a2, a3 := a[ra[0]:][:n], a[ra[1]:][:n], a[ra[2]:][:n], a[ra[3]:][:n]
	b0, b1, b2 := b[rb[0]:][:n], b[rb[1]:][:n], b[rb[2]:][:n]
	if e == Portable {
		dotGo(s, a0, a1, b0, b1, b2, 0)
		dotGo(s, a2, a3, b0, b1, b2, 2)
		return
	}
	dotAVX2(n, &a0[0], &a1[0], &a2[0], &a3[0], &b0[0], &b1[0], &b2[0], (*[96]float32)(s))
}

func (e Engine) String() string {
	if e == AVX2 {
		return "avx2"
	}
	return "portable"
}
