package kern

import "testing"

// The shapes are those of the ConvNet's second convolution, 16→32 channels.

func BenchmarkMul(b *testing.B) {
	const m, k, side, width = 32, 16 * 9, 26, 24
	x := make([]float32, 16*side*side)
	var a Packed
	a.Reset(m, k)
	c := make([]float32, m*width*width)
	rows := NewOffsets(k, func(i int) int { return i/9*side*side + i%9/3*side + i%3 })
	perEngine(b, 2*m*k*width*width, func(e Engine) {
		for y := range width {
			e.Mul(c[y*width:], width*width, width, &a, x[y*side:], rows)
		}
	})
}

func BenchmarkDot(b *testing.B) {
	const m, k, side, n = 32, 16 * 9, 26, 23*26 + 24
	x := make([]float32, 16*side*side)
	dy := make([]float32, m*n)
	s := make([]Sums, m/4*k/3)
	rows := NewOffsets(k, func(i int) int { return i/9*side*side + i%9/3*side + i%3 })
	perEngine(b, 2*m*k*n, func(e Engine) {
		for i := range s {
			t, q := i/(k/3)*4*n, i%(k/3)*3
			e.Dot(&s[i], n, dy, &[4]int{t, t + n, t + 2*n, t + 3*n}, x, &[3]int{rows.At(q), rows.At(q + 1), rows.At(q + 2)})
		}
	})
}

func perEngine(b *testing.B, flops int, f func(e Engine)) {
	for e := Portable; e <= Best(); e++ {
		b.Run(e.String(), func(b *testing.B) {
			for b.Loop() {
				f(e)
			}
			b.ReportMetric(float64(flops)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOPS")
		})
	}
}
