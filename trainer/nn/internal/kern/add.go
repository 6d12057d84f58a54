package kern

// Add sets dst to dst + x, which is as long or longer.
func (e Engine) Add(dst, x []float32) {
	x = x[:len(dst):len(x)]
	done := 0
	if e == AVX2 && len(dst) >= 8 {
		done = len(dst) / 8 * 8
		addAVX2(done, &dst[0], &x[0])
	}
	for i, v := range x[done:] {
		dst[done+i] += v
	}
}
