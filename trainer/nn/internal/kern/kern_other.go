//go:build !amd64 || purego

package kern

// Best is the portable engine: there is no assembly for this build.
func Best() Engine { return Portable }

// Mul, Dot, Add and Prefetch name these on every machine. None is reached here: nobody asks for
// a better engine than Best.

func tileAVX2(k int, a, b *float32, off *int, c0, c1, c2, c3 *float32) {
	panic("kern: no AVX2 in this build")
}

func dotAVX2(n int, a0, a1, a2, a3, b0, b1, b2 *float32, sums *Sums) {
	panic("kern: no AVX2 in this build")
}

func addAVX2(n int, dst, x *float32) {
	panic("kern: no AVX2 in this build")
}

func prefetchAVX2(ldc int, c *float32) {
	panic("kern: no AVX2 in this build")
}
