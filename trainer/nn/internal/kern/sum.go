package kern

// Sum adds up x in four chains, as one would wait for each addition in turn.
func Sum(x []float32) float32 {
	var a, b, c, d float32
	for ; len(x) >= 4; x = x[4:] {
		a += x[0]
		b += x[1]
		c += x[2]
		d += x[3]
	}
	for _, v := range x {
		a += v
	}
	return (a + b) + (c + d)
}
