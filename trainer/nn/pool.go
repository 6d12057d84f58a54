package nn

import "math"

// maxPool takes the largest of each 2×2 square of z, planes of h×w floats, and
// notes which of the four it was, numbered 0 1 over 2 3; a NaN wins, and among
// equals the first. An odd last row or column is left out. Nothing branches on
// data: every other square would cost a misprediction.
func maxPool(y []float32, which []uint8, z []float32, h, w int) {
	ow := w / 2
	for plane := 0; plane < len(z); plane += h * w {
		for row := range h / 2 {
			at := plane + 2*row*w
			top, bottom := z[at:][:2*ow], z[at+w:][:2*ow]
			out, from := y[:ow], which[:ow]
			y, which = y[ow:], which[ow:]
			for j := range out {
				a, b, c, d := top[2*j], top[2*j+1], bottom[2*j], bottom[2*j+1]
				v := max(a, b, c, d)
				past0 := differ(v, a)
				past1 := past0 & differ(v, b)
				past2 := past1 & differ(v, c)
				out[j], from[j] = v, uint8(past0+past1+past2)
			}
		}
	}
}

// differ is 1 unless v and x are the same bits.
func differ(v, x float32) uint32 {
	d := math.Float32bits(v) ^ math.Float32bits(x)
	return (d | -d) >> 31
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
