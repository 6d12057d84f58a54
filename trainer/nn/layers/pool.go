package layers

import (
	"fmt"
	"math"

	"peermesh/trainer/nn/internal/kern"
)

// A MaxPool2d takes the largest of each window: torch.nn.MaxPool2d. A NaN wins, and
// among equals the first.
type MaxPool2d struct {
	Kernel          int
	Stride, Padding int // a Stride of zero is Kernel; Padding is at most half of it

	pool
	which []int32 // the place in its image of each output
}

// An AvgPool2d takes the mean of each window, the zeros of the padding included:
// torch.nn.AvgPool2d.
type AvgPool2d struct {
	Kernel          int
	Stride, Padding int // a Stride of zero is Kernel; Padding is at most half of it

	pool
}

// A pool is what both have in common.
type pool struct {
	geometry
	raw          bool
	n            int // images: samples × channels
	x, y, dy, dx []float32
	fwd, bwd     func(worker, part int)
}

func (l *pool) init(b *Builder, in Shape, name string, k, s, pad int) (Shape, error) {
	if s == 0 {
		s = k
	}
	g, err := newGeometry(in, k, s, pad)
	if err == nil && 2*pad > k {
		err = fmt.Errorf("padding %d is more than half of the kernel, %d", pad, k)
	}
	if err != nil {
		return nil, fmt.Errorf("layers: %s%s: %w", b.prefix, name, err)
	}
	l.geometry, l.raw = g, b.raw
	return Shape{g.c, g.oh, g.ow}, nil
}

func (l *pool) forward(p *Pass, x []float32) {
	l.n, l.x = p.N*l.c, x
	l.y = grow(l.y, l.n*l.oh*l.ow)
}

func (l *pool) backward(p *Pass, dy []float32) []float32 {
	if l.raw {
		return nil
	}
	l.dy, l.dx = dy, grow(l.dx, len(l.x))
	p.Each(cut(l.n), l.bwd)
	return l.dx
}

// window is the pixels of the image that output (y, x) looks at.
func (l *pool) window(y, x int) (y0, y1, x0, x1 int) {
	y0, x0 = y*l.s-l.pad, x*l.s-l.pad
	return max(y0, 0), min(y0+l.k, l.h), max(x0, 0), min(x0+l.k, l.wd)
}

// Init is Layer's.
func (l *MaxPool2d) Init(b *Builder, in Shape) (Shape, error) {
	l.fwd, l.bwd = l.forwardPart, l.backwardPart
	return l.init(b, in, "MaxPool2d", l.Kernel, l.Stride, l.Padding)
}

// Forward is Layer's.
func (l *MaxPool2d) Forward(p *Pass, x []float32) ([]float32, error) {
	l.forward(p, x)
	l.which = grow(l.which, len(l.y))
	p.Each(cut(l.n), l.fwd)
	return l.y, nil
}

// Backward is Layer's.
func (l *MaxPool2d) Backward(p *Pass, dy []float32) ([]float32, error) {
	return l.backward(p, dy), nil
}

func (l *MaxPool2d) forwardPart(_, part int) {
	lo, hi := bounds(l.n, part)
	for i := lo; i < hi; i++ {
		image := l.x[i*l.h*l.wd:][:l.h*l.wd]
		at := i * l.oh * l.ow
		for y := range l.oh {
			for x := range l.ow {
				y0, y1, x0, x1 := l.window(y, x)
				best, which := float32(math.Inf(-1)), y0*l.wd+x0
				for yy := y0; yy < y1; yy++ {
					for xx, v := range image[yy*l.wd+x0 : yy*l.wd+x1] {
						if v > best || v != v {
							best, which = v, yy*l.wd+x0+xx
						}
					}
				}
				l.y[at], l.which[at] = best, int32(which)
				at++
			}
		}
	}
}

func (l *MaxPool2d) backwardPart(_, part int) {
	lo, hi := bounds(l.n, part)
	clear(l.dx[lo*l.h*l.wd : hi*l.h*l.wd])
	for i := lo; i < hi; i++ {
		image := l.dx[i*l.h*l.wd:]
		from := i * l.oh * l.ow
		for j, v := range l.dy[from:][:l.oh*l.ow] {
			image[l.which[from+j]] += v
		}
	}
}

// Init is Layer's.
func (l *AvgPool2d) Init(b *Builder, in Shape) (Shape, error) {
	l.fwd, l.bwd = l.forwardPart, l.backwardPart
	return l.init(b, in, "AvgPool2d", l.Kernel, l.Stride, l.Padding)
}

// Forward is Layer's.
func (l *AvgPool2d) Forward(p *Pass, x []float32) ([]float32, error) {
	l.forward(p, x)
	p.Each(cut(l.n), l.fwd)
	return l.y, nil
}

// Backward is Layer's.
func (l *AvgPool2d) Backward(p *Pass, dy []float32) ([]float32, error) {
	return l.backward(p, dy), nil
}

func (l *AvgPool2d) forwardPart(_, part int) {
	lo, hi := bounds(l.n, part)
	for i := lo; i < hi; i++ {
		image := l.x[i*l.h*l.wd:][:l.h*l.wd]
		at := i * l.oh * l.ow
		for y := range l.oh {
			for x := range l.ow {
				y0, y1, x0, x1 := l.window(y, x)
				var v float32
				for yy := y0; yy < y1; yy++ {
					v += kern.Sum(image[yy*l.wd+x0 : yy*l.wd+x1])
				}
				l.y[at] = v / float32(l.k*l.k)
				at++
			}
		}
	}
}

func (l *AvgPool2d) backwardPart(_, part int) {
	lo, hi := bounds(l.n, part)
	clear(l.dx[lo*l.h*l.wd : hi*l.h*l.wd])
	for i := lo; i < hi; i++ {
		image := l.dx[i*l.h*l.wd:]
		at := i * l.oh * l.ow
		for y := range l.oh {
			for x := range l.ow {
				v := l.dy[at] / float32(l.k*l.k)
				at++
				y0, y1, x0, x1 := l.window(y, x)
				for yy := y0; yy < y1; yy++ {
					for xx := x0; xx < x1; xx++ {
						image[yy*l.wd+xx] += v
					}
				}
			}
		}
	}
}

// A GlobalAvgPool2d takes the mean of each channel, which makes a vector of an
// image: torch.nn.AdaptiveAvgPool2d(1) and a flattening.
type GlobalAvgPool2d struct {
	raw          bool
	plane        int
	x, y, dy, dx []float32
	fwd, bwd     func(worker, part int)
}

// Init is Layer's.
func (l *GlobalAvgPool2d) Init(b *Builder, in Shape) (Shape, error) {
	if len(in) != 3 {
		return nil, fmt.Errorf("layers: %sGlobalAvgPool2d: its input is %v, want channels, height, width", b.prefix, in)
	}
	l.raw, l.plane = b.raw, in[1]*in[2]
	l.fwd, l.bwd = l.forwardPart, l.backwardPart
	return Shape{in[0]}, nil
}

// Forward is Layer's.
func (l *GlobalAvgPool2d) Forward(p *Pass, x []float32) ([]float32, error) {
	l.x, l.y = x, grow(l.y, len(x)/l.plane)
	p.Each(cut(len(l.y)), l.fwd)
	return l.y, nil
}

// Backward is Layer's.
func (l *GlobalAvgPool2d) Backward(p *Pass, dy []float32) ([]float32, error) {
	if l.raw {
		return nil, nil
	}
	l.dy, l.dx = dy, grow(l.dx, len(l.x))
	p.Each(cut(len(dy)), l.bwd)
	return l.dx, nil
}

func (l *GlobalAvgPool2d) forwardPart(_, part int) {
	lo, hi := bounds(len(l.y), part)
	for i := lo; i < hi; i++ {
		l.y[i] = kern.Sum(l.x[i*l.plane:][:l.plane]) / float32(l.plane)
	}
}

func (l *GlobalAvgPool2d) backwardPart(_, part int) {
	lo, hi := bounds(len(l.dy), part)
	for i := lo; i < hi; i++ {
		v := l.dy[i] / float32(l.plane)
		for j := range l.dx[i*l.plane:][:l.plane] {
			l.dx[i*l.plane+j] = v
		}
	}
}
