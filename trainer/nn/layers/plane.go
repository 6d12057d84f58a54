package layers

import (
	"fmt"

	"peermesh/trainer/nn/internal/kern"
)

// How a convolution of any stride is direct.
//
// With a stride of s, the pixel that tap (ky, kx) meets at output (y, x) is at
// (s·y+ky, s·x+kx) of the padded image: it is of the phase (ky mod s, kx mod s), the
// sub-image of every s-th row and column from there, at (y+ky/s, x+kx/s). So, once
// an image is split into its phases, each tap is a shifted view of one of them, and
// each row of the matrix that others unroll is there already, at an offset. Rows of
// all phases are pitch floats long; what a view has in the columns past an output
// row is computed along with the rest, and left.
//
// Backward, the gradient of a phase is the sum over its taps of views of the
// output's gradient, laid out in rows of the same pitch behind zeros. No tap meets
// an inserted zero, as it would in a transposed convolution.
//
// The planes of one channel and phase of a group of samples lie together, so that
// small images fill the kernels' tiles as well as large ones.

// A geometry is the sizes of a window that slides over an image.
type geometry struct {
	c, h, wd   int // of the input
	oh, ow     int // of the output
	k, s, pad  int
	phases     int // along each side: no more than a kernel has taps
	ph, pitch  int // rows of a phase that taps meet, and floats of a row
	plane, off int // floats of a phase; those from the first to the last tap's view
}

func newGeometry(in Shape, k, s, pad int) (geometry, error) {
	if s == 0 {
		s = 1
	}
	if len(in) != 3 {
		return geometry{}, fmt.Errorf("its input is %v, want channels, height, width", in)
	}
	if k < 1 || k > MaxKernel || s < 1 || s > MaxKernel || pad < 0 || pad > MaxKernel {
		return geometry{}, fmt.Errorf("kernel %d, stride %d, padding %d: want at most %d", k, s, pad, MaxKernel)
	}
	g := geometry{c: in[0], h: in[1], wd: in[2], k: k, s: s, pad: pad, phases: min(s, k)}
	if g.h+2*pad < k || g.wd+2*pad < k {
		return g, fmt.Errorf("its kernel of %d is larger than its input %v", k, in)
	}
	g.oh, g.ow = (g.h+2*pad-k)/s+1, (g.wd+2*pad-k)/s+1
	g.ph, g.pitch = g.oh+(k-1)/s, g.ow+(k-1)/s
	g.plane = g.ph * g.pitch
	g.off = (k - 1) / s * (g.pitch + 1)
	return g, nil
}

// groupFloats is how long a group's planes should at least be, and maxGroup how
// many samples it has at most.
const (
	groupFloats = 256
	maxGroup    = 8
)

// planes says where everything is in a worker's scratch.
type planes struct {
	geometry
	outs      int
	group     int            // samples that are computed together
	taps      kern.Offsets   // of tap (channel, ky, kx) in the split input
	phaseTaps [][]int        // which taps of a channel's k×k are of each phase
	back      []kern.Offsets // by phase: (out, its taps) in the spread gradient
}

func newPlanes(g geometry, outs int) planes {
	p := planes{geometry: g, outs: outs, group: max(1, min((groupFloats+g.plane-1)/g.plane, maxGroup))}
	kk, pp := g.k*g.k, g.phases*g.phases
	view := func(tap int) int { return tap/g.k/g.s*g.pitch + tap%g.k/g.s }
	phase := func(tap int) int { return tap/g.k%g.s*g.phases + tap%g.k%g.s }
	p.taps = kern.NewOffsets(g.c*kk, func(i int) int {
		return (i/kk*pp+phase(i%kk))*p.group*g.plane + view(i%kk)
	})
	p.phaseTaps = make([][]int, pp)
	for tap := range kk {
		p.phaseTaps[phase(tap)] = append(p.phaseTaps[phase(tap)], tap)
	}
	for _, taps := range p.phaseTaps {
		p.back = append(p.back, kern.NewOffsets(outs*len(taps), func(i int) int {
			return p.dyAt(i/len(taps)) - view(taps[i%len(taps)])
		}))
	}
	return p
}

// span is the floats from the first to the last output of n samples.
func (p *planes) span(n int) int { return (n-1)*p.plane + (p.oh-1)*p.pitch + p.ow }

// columns are those that n samples are computed in: at least a tile.
func (p *planes) columns(n int) int     { return max(p.span(n), kern.Cols) }
func (p *planes) columnsBack(n int) int { return max(n*p.plane, kern.Cols) }

// inLen is the scratch for the split input. Past it, a view of a small image may
// reach as far as a tile.
func (p *planes) inLen() int { return p.c*p.phases*p.phases*p.group*p.plane + kern.Cols }

// dyAt is where the plane of an output channel's gradient starts: behind as many
// zeros as a view goes back.
func (p *planes) dyAt(o int) int { return o*(p.off+p.group*p.plane) + p.off }
func (p *planes) dyLen() int     { return p.dyAt(p.outs) + kern.Cols }

// inside is the columns (or rows) of a phase that are within an image of a size.
func (p *planes) inside(phase, size, most int) (lo, hi int) {
	lo = max(0, (p.pad-phase+p.s-1)/p.s)
	if last := size - 1 + p.pad - phase; last >= 0 {
		hi = min(most, last/p.s+1)
	}
	return lo, max(lo, hi)
}

// split lays image i of x into place at of a group. What it does not write has been
// zero since the scratch was made.
func (p *planes) split(to, x []float32, i, at int) {
	for c := range p.c {
		image := x[(i*p.c+c)*p.h*p.wd:][:p.h*p.wd]
		for phase := range p.phases * p.phases {
			fy, fx := phase/p.phases, phase%p.phases
			plane := to[((c*p.phases*p.phases+phase)*p.group+at)*p.plane:][:p.plane]
			ylo, yhi := p.inside(fy, p.h, p.ph)
			xlo, xhi := p.inside(fx, p.wd, p.pitch)
			for y := ylo; y < yhi; y++ {
				row := image[(y*p.s+fy-p.pad)*p.wd:][:p.wd]
				from, dst := xlo*p.s+fx-p.pad, plane[y*p.pitch+xlo:][:xhi-xlo]
				if p.s == 1 {
					copy(dst, row[from:])
					continue
				}
				for j := range dst {
					dst[j] = row[from+j*p.s]
				}
			}
		}
	}
}

// join is split backward for one phase: sample at of the group's dx, rows of ldc
// floats for each channel, to image i. The first phase clears what no tap meets.
func (p *planes) join(dx, from []float32, ldc, phase, i, at int) {
	fy, fx := phase/p.phases, phase%p.phases
	ylo, yhi := p.inside(fy, p.h, p.ph)
	xlo, xhi := p.inside(fx, p.wd, p.pitch)
	for c := range p.c {
		image := dx[(i*p.c+c)*p.h*p.wd:][:p.h*p.wd]
		if phase == 0 && !p.covers() {
			clear(image)
		}
		plane := from[c*ldc+at*p.plane:]
		for y := ylo; y < yhi; y++ {
			row := image[(y*p.s+fy-p.pad)*p.wd:][:p.wd]
			to, src := xlo*p.s+fx-p.pad, plane[y*p.pitch+xlo:][:xhi-xlo]
			if p.s == 1 {
				copy(row[to:], src)
				continue
			}
			for j, v := range src {
				row[to+j*p.s] = v
			}
		}
	}
}

// covers says whether every pixel is met by a tap.
func (p *planes) covers() bool { return p.s == 1 }

// pick takes sample at of a group's output, rows of ldc floats for each channel, to
// image i of y.
func (p *planes) pick(y, wide []float32, ldc, i, at int) {
	for o := range p.outs {
		image, plane := y[(i*p.outs+o)*p.oh*p.ow:], wide[o*ldc+at*p.plane:]
		for r := range p.oh {
			copy(image[r*p.ow:][:p.ow], plane[r*p.pitch:])
		}
	}
}

// spread is pick backward, and adds each channel's sum to bias.
func (p *planes) spread(to, dy []float32, i, at int, bias []float32) {
	for o := range p.outs {
		image, plane := dy[(i*p.outs+o)*p.oh*p.ow:][:p.oh*p.ow], to[p.dyAt(o)+at*p.plane:]
		bias[o] += kern.Sum(image)
		for r := range p.oh {
			copy(plane[r*p.pitch:][:p.ow], image[r*p.ow:])
		}
	}
}
