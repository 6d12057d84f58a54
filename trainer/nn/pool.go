package nn

import "math"

// maxPool takes the largest of each 2×2 square of z, planes of h×w floats, and
// notes which of the four it was; a NaN wins, and among equals the first. An odd
// last row or column is left out. It never branches on data: that would cost a
// misprediction for every other square.
func maxPool(y []float32, which []uint8, z []float32, h, w int) {
	ow := w / 2
	for plane := 0; plane < len(z); plane += h * w {
		for row := range h / 2 {
			at := plane + 2*row*w
			top, bottom := z[at:][:2*ow], z[at+w:][:2*ow]
			out, from := y[:ow], which[:ow]
			y, which = y[ow:], which[ow:]
			for j := range out {
				k := min(2*j, len(top)-2)
				t, b := (*[2]float32)(top[k:]), (*[2]float32)(bottom[k:])
				v := max(max(t[0], t[1]), max(b[0], b[1]))
				out[j], from[j] = v, first(v, t, b)
			}
		}
	}
}

// first is the place of v in the square of rows t and b: 0 1 over 2 3.
func first(v float32, t, b *[2]float32) uint8 {
	bits := math.Float32bits(v)
	k := uint8(3)
	if math.Float32bits(b[0]) == bits {
		k = 2
	}
	if math.Float32bits(t[1]) == bits {
		k = 1
	}
	if math.Float32bits(t[0]) == bits {
		k = 0
	}
	return k
}

// unpool is maxPool backward for one plane: dz, rows of stride floats, gets each
// gradient of dy where its maximum came from and zeros elsewhere.
func unpool(dz []float32, stride int, dy []float32, which []uint8, ow int) {
	for ; len(dy) >= ow && ow > 0; dy, which = dy[ow:], which[ow:] {
		clear(dz[:2*ow])
		clear(dz[stride:][:2*ow])
		for j, v := range dy[:ow] {
			k := int(which[j])
			dz[2*j+k&1+k>>1*stride] = v
		}
		dz = dz[min(2*stride, len(dz)):]
	}
}
