package compress

import "math"

// dependent is the part of a column's square that must be left once what the columns
// before it have is taken away; less is the rounding of float32.
const dependent = 1e-12

// orthonormalize makes the r columns of an n × r matrix orthonormal, by Gram and Schmidt's
// method, computed in float64. A column that depends on those before it becomes the
// first unit vector that does not, so the columns are r directions whatever they were.
// epsilon is added to each length before the division. All ranks compute this from the
// same bits, and no product is fused with a sum, so they get the same bits.
func orthonormalize[T real](x []T, n, r int, epsilon float64) {
	column := make([]float64, n)
	for c := range r {
		for i := range column {
			column[i] = float64(x[i*r+c])
		}
		before := square(column)
		project(column, x, n, r, c)
		left := square(column)
		for unit := 0; !(left > dependent*before) && left == left && unit < n; unit++ {
			clear(column)
			column[unit] = 1
			project(column, x, n, r, c)
			// Of the n unit vectors some have as much left as is left on average.
			if left = square(column); left >= float64(n-c)/float64(2*n) {
				break
			}
			left = 0
		}
		length := math.Sqrt(left) + epsilon
		for i, v := range column {
			x[i*r+c] = T(v / length)
		}
	}
}

// project takes from a column what the first c columns of x have of it.
func project[T real](column []float64, x []T, n, r, c int) {
	for k := range c {
		dot := 0.
		for i, v := range column {
			dot += float64(v * float64(x[i*r+k]))
		}
		for i := range column {
			column[i] -= float64(dot * float64(x[i*r+k]))
		}
	}
}

func square(x []float64) (sum float64) {
	for _, v := range x {
		sum += float64(v * v)
	}
	return sum
}

// times is p = xq, of n × m and m × r.
func times[T real](p, x, q []T, n, m, r int) {
	for i := range n {
		row, out := x[i*m:][:m], p[i*r:][:r]
		clear(out)
		for j, v := range row {
			for k, w := range q[j*r:][:r] {
				out[k] += v * w
			}
		}
	}
}

// transposed is q = xᵀp, of n × m and n × r.
func transposed[T real](q, x, p []T, n, m, r int) {
	clear(q)
	for i := range n {
		row, from := x[i*m:][:m], p[i*r:][:r]
		for j, v := range row {
			out := q[j*r:][:r]
			for k, w := range from {
				out[k] += v * w
			}
		}
	}
}
