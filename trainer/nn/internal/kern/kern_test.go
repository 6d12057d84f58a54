package kern

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// engines runs a test with each engine that this machine has.
func engines(t *testing.T, test func(t *testing.T, e Engine)) {
	for e := Portable; e <= Best(); e++ {
		t.Run(e.String(), func(t *testing.T) { test(t, e) })
	}
}

func noise(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = 2*r.Float32() - 1
	}
	return x
}

// near allows for float32's rounding of a sum of k products below one.
func near(got float32, want float64, k int) bool {
	return math.Abs(float64(got)-want) <= 1e-6*float64(k+1)
}

// A product is the operands of one Mul, B's rows scattered over b and C's apart.
type product struct {
	m, n, k, ldc int
	a, bias, b   []float32 // a is row-major
	rows         Offsets
	packed       Packed
}

func newProduct(m, n, k int) *product {
	r := rand.New(rand.NewPCG(uint64(m*n), uint64(k)))
	p := &product{m: m, n: n, k: k, ldc: n + 3, a: noise(r, m*k), bias: noise(r, m)}
	p.rows = NewOffsets(k, func(int) int { return r.IntN(5 * k) })
	p.b = noise(r, p.rows.last+n) // not a float more
	p.packed.Reset(m, k)
	p.packed.Set(0, k, p.a, k, 1)
	p.packed.Start(p.bias)
	return p
}

func (p *product) want(r, j int) float64 {
	s := float64(p.bias[r])
	for i := range p.k {
		s += float64(p.a[r*p.k+i]) * float64(p.b[p.rows.At(i)+j])
	}
	return s
}

// mul returns C, whose rows end with three floats that nobody may touch.
func (p *product) mul(e Engine) []float32 {
	c := make([]float32, p.m*p.ldc)
	for i := range c {
		c[i] = untouched
	}
	e.Mul(c, p.ldc, p.n, &p.packed, p.b, p.rows)
	return c
}

const untouched = 12345

func TestMul(t *testing.T) {
	engines(t, func(t *testing.T, e Engine) {
		for _, n := range []int{1, 2, 3, 8, 23, 24, 25, 26, 47, 48, 49, 73} {
			for m := 1; m <= 9; m++ {
				for _, k := range []int{1, 2, 9, 50} {
					p := newProduct(m, n, k)
					for i, v := range p.mul(e) {
						r, j := i/p.ldc, i%p.ldc
						if j >= n && v != untouched {
							t.Fatalf("%d×%d×%d: wrote past row %d", m, k, n, r)
						}
						if j < n && !near(v, p.want(r, j), k) {
							t.Fatalf("%d×%d×%d: C[%d][%d] = %v, want %v", m, k, n, r, j, v, p.want(r, j))
						}
					}
				}
			}
		}
	})
}

// A panel is four rows of what Mul gives, the last row standing in for those that are not there.
func TestPanel(t *testing.T) {
	engines(t, func(t *testing.T, e Engine) {
		for _, n := range []int{1, 7, 23, 24} {
			for _, m := range []int{1, 3, 4, 6, 9} {
				p := newProduct(m, n, 8)
				whole := p.mul(e)
				for top := 0; top < m; top += Rows {
					c := make([]float32, 3*p.ldc+n) // not a float more
					e.Panel(c, p.ldc, n, &p.packed, top, p.b, p.rows)
					for i, v := range c {
						r, j := i/p.ldc, i%p.ldc
						if want := whole[min(top+r, m-1)*p.ldc+j]; j < n && v != want {
							t.Fatalf("%d×%d, row %d of the panel at %d: %v, want %v", m, n, r, top, v, want)
						}
					}
				}
			}
		}
	})
}

func TestAdd(t *testing.T) {
	engines(t, func(t *testing.T, e Engine) {
		r := rand.New(rand.NewPCG(3, 3))
		for n := range 40 {
			dst, x := noise(r, n+1), noise(r, n+1)
			was := slices.Clone(dst)
			e.Add(dst[:n], x)
			for i, v := range dst[:n] {
				if v != was[i]+x[i] {
					t.Fatalf("element %d of %d: %v + %v = %v", i, n, was[i], x[i], v)
				}
			}
			if dst[n] != was[n] {
				t.Fatalf("%d elements: wrote past them", n)
			}
		}
	})
}

// An element has the same bits wherever it lies in a tile, and whatever is
// around it: networks promise that of a sample in a batch.
func TestMulIgnoresPlace(t *testing.T) {
	engines(t, func(t *testing.T, e Engine) {
		p := newProduct(8, 72, 30)
		whole := p.mul(e)
		for m := 1; m <= 8; m++ {
			for n := Cols; n <= 72; n++ {
				p.packed.Reset(m, p.k)
				p.packed.Set(0, p.k, p.a, p.k, 1)
				p.packed.Start(p.bias)
				c := make([]float32, m*n)
				e.Mul(c, n, n, &p.packed, p.b, p.rows)
				for i, v := range c {
					if v != whole[i/n*p.ldc+i%n] {
						t.Fatalf("C[%d][%d] of %d×%d differs", i/n, i%n, m, n)
					}
				}
			}
		}
	})
}

// Packing by columns, transposed and in pieces, gives what packing at once does.
func TestPackedSet(t *testing.T) {
	const m, k = 6, 5
	src := noise(rand.New(rand.NewPCG(1, 1)), m*k)
	transposed := make([]float32, m*k)
	for r := range m {
		for j := range k {
			transposed[j*m+r] = src[r*k+j]
		}
	}
	var whole, pieces Packed
	pieces.Reset(9, 9) // old elements are to vanish
	pieces.Start(noise(rand.New(rand.NewPCG(2, 2)), 9))
	whole.Reset(m, k)
	whole.Set(0, k, src, k, 1)
	pieces.Reset(m, k)
	pieces.Set(2, 3, transposed[2*m:], 1, m)
	pieces.Set(0, 2, src, k, 1)
	if fmt.Sprint(whole.data) != fmt.Sprint(pieces.data) {
		t.Errorf("whole %v\npieces %v", whole.data, pieces.data)
	}
}

func TestDot(t *testing.T) {
	engines(t, func(t *testing.T, e Engine) {
		r := rand.New(rand.NewPCG(3, 3))
		for n := range 70 {
			a, b := noise(r, 4*n+5), noise(r, 3*n+5)
			ra := [4]int{0, n + 5, 3*n + 5, 3*n + 5} // the last ends with a; two coincide
			rb := [3]int{2*n + 5, 1, 0}
			var s Sums
			const times = 2
			for range times {
				e.Dot(&s, n, a, &ra, b, &rb)
			}
			for i, at := range ra {
				for q, bt := range rb {
					want := 0.0
					for j := range n {
						want += times * float64(a[at+j]) * float64(b[bt+j])
					}
					if got := s.Sum(i, q); !near(got, want, times*n) {
						t.Fatalf("n = %d: row %d by row %d is %v, want %v", n, i, q, got, want)
					}
				}
			}
		}
	})
}

// A row's product has the same bits in whichever of the four places it stands.
func TestDotIgnoresPlace(t *testing.T) {
	engines(t, func(t *testing.T, e Engine) {
		r := rand.New(rand.NewPCG(4, 4))
		const n = 61
		a, b := noise(r, n), noise(r, n)
		var s Sums
		e.Dot(&s, n, a, &[4]int{}, b, &[3]int{})
		for i := range 4 {
			for q := range 3 {
				if s.Sum(i, q) != s.Sum(0, 0) {
					t.Errorf("place %d, %d: %v, want %v", i, q, s.Sum(i, q), s.Sum(0, 0))
				}
			}
		}
	})
}

func TestOffsets(t *testing.T) {
	o := NewOffsets(4, func(i int) int { return []int{3, 9, 1, 20}[i] })
	if f := o.First(3); f.Len() != 3 || f.At(1) != 9 || f.last != 9 {
		t.Errorf("First(3) is %+v", f)
	}
	if e := Every(3, 7); e.At(2) != 14 || e.last != 14 {
		t.Errorf("Every(3, 7) is %+v", e)
	}
}

// Operands that are too short are a panic in Go, never a fault in assembly.
func TestBounds(t *testing.T) {
	engines(t, func(t *testing.T, e Engine) {
		p := newProduct(5, 30, 9)
		c := make([]float32, 4*p.ldc+p.n)
		s, x := new(Sums), make([]float32, 40)
		for name, f := range map[string]func(){
			"short c":       func() { e.Mul(c[:len(c)-1], p.ldc, p.n, &p.packed, p.b, p.rows) },
			"short b":       func() { e.Mul(c, p.ldc, p.n, &p.packed, p.b[:len(p.b)-1], p.rows) },
			"other k":       func() { e.Mul(c, p.ldc, p.n, &p.packed, p.b, p.rows.First(8)) },
			"empty factors": func() { e.Mul(c, p.ldc, p.n, new(Packed), p.b, Offsets{}) },
			"short panel":   func() { e.Panel(c[:3*p.ldc+23], p.ldc, 24, &p.packed, 4, p.b, p.rows) },
			"wide panel":    func() { e.Panel(c, p.ldc, 25, &p.packed, 0, p.b, p.rows) },
			"panel past a":  func() { e.Panel(c, p.ldc, 24, &p.packed, 8, p.b, p.rows) },
			"other panel":   func() { e.Panel(c, p.ldc, 24, &p.packed, 0, p.b, p.rows.First(8)) },
			"short sum":     func() { e.Add(x, x[:39:39]) },
			"short row a":   func() { e.Dot(s, 20, x, &[4]int{0, 0, 21, 0}, x, &[3]int{}) },
			"short row b":   func() { e.Dot(s, 20, x, &[4]int{}, x, &[3]int{0, 0, 21}) },
		} {
			t.Run(name, func(t *testing.T) {
				defer func() {
					if recover() == nil {
						t.Error("no panic")
					}
				}()
				f()
			})
		}
	})
}

// Every length up to some chains' worth, of numbers whose sums are exact.
func TestSum(t *testing.T) {
	var x []float32
	for n, want := 0, float32(0); n < 14; n++ {
		if got := Sum(x); got != want {
			t.Errorf("of %v: %v, want %v", x, got, want)
		}
		x, want = append(x, float32(n*n+1)), want+float32(n*n+1)
	}
}
