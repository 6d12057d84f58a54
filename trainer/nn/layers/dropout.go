package layers

import (
	"fmt"

	"peermesh/trainer/nn/internal/draw"
)

// A Dropout zeroes floats with probability P, in training, and divides the others by
// 1-P (Srivastava et al., 2014). A sample's mask is a function of the network's Seed
// and Stream, the step, the layer and the sample's place in the batch, so it does not
// depend on threads; backward draws it again rather than keep it.
type Dropout struct {
	P       float64
	Channel bool // drop whole channels of an image: torch.nn.Dropout2d

	place    uint64
	run      int // floats that are dropped together
	size     int // of a sample
	masks    draw.Stream
	off      bool // in this pass
	from, to []float32
	y        []float32
	job      func(worker, part int)
}

// Init is Layer's.
func (l *Dropout) Init(b *Builder, in Shape) (Shape, error) {
	if !(l.P >= 0 && l.P < 1) {
		return nil, fmt.Errorf("layers: %sDropout of %v, want a probability below 1", b.prefix, l.P)
	}
	l.place, l.size, l.run = b.place(), in.Len(), 1
	if l.Channel && len(in) > 0 {
		l.run = in.Len() / in[0]
	}
	l.job = l.part
	return in, nil
}

// Forward is Layer's.
func (l *Dropout) Forward(p *Pass, x []float32) ([]float32, error) {
	if l.off = !p.Train || l.P == 0; l.off {
		return x, nil
	}
	l.masks = p.net.masks.At(l.place)
	l.y = grow(l.y, len(x))
	l.from, l.to = x, l.y
	p.Each(cut(p.N), l.job)
	return l.y, nil
}

// Backward is Layer's.
func (l *Dropout) Backward(p *Pass, dy []float32) ([]float32, error) {
	if !l.off {
		l.from, l.to = dy, dy
		p.Each(cut(p.N), l.job)
	}
	return dy, nil
}

func (l *Dropout) part(_, part int) {
	lo, hi := bounds(len(l.to)/l.size, part)
	for i := lo; i < hi; i++ {
		l.mask(l.to[i*l.size:][:l.size], l.from[i*l.size:], l.masks.At(uint64(i)))
	}
}

// mask sets y to what is left of x. A run takes 32 bits of s.
func (l *Dropout) mask(y, x []float32, s draw.Stream) {
	threshold := uint64(l.P * (1 << 32))
	scale := float32(1 / (1 - l.P))
	var bits uint64
	for i := 0; i*l.run < len(y); i++ {
		if bits >>= 32; i%2 == 0 {
			bits = s.Next()
		}
		keep := scale
		if bits&(1<<32-1) < threshold {
			keep = 0
		}
		for j := i * l.run; j < (i+1)*l.run; j++ {
			y[j] = x[j] * keep
		}
	}
}
