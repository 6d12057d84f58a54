package layers

import (
	"fmt"
	"math"
)

// A LayerNorm normalises each row, the floats along the innermost dimension, to mean
// 0 and variance 1, and then scales and shifts by parameters: Ba, Kiros and Hinton,
// 2016; torch.nn.LayerNorm of the last dimension.
type LayerNorm struct {
	Eps float64 // added to the variance; zero: 1e-5

	width     int
	w, bias   *Weight
	center    []float32 // by row: what x was normalised with
	inv       []float32
	x, y, dy  []float32
	shares    *folding
	fwd, back func(worker, part int)
}

// Init is Layer's.
func (l *LayerNorm) Init(b *Builder, in Shape) (Shape, error) {
	if len(in) == 0 || !(l.Eps >= 0) {
		return nil, fmt.Errorf("layers: %sLayerNorm of %v, eps %v", b.prefix, in, l.Eps)
	}
	if l.Eps == 0 {
		l.Eps = 1e-5
	}
	l.width = in.last()
	l.w, l.bias = b.Weight("weight", Constant(1), l.width), b.Weight("bias", Constant(0), l.width)
	l.fwd, l.back = l.forward, l.backward
	return in, nil
}

// Forward is Layer's.
func (l *LayerNorm) Forward(p *Pass, x []float32) ([]float32, error) {
	rows := len(x) / l.width
	l.x, l.y = x, grow(l.y, len(x))
	l.center, l.inv = grow(l.center, rows), grow(l.inv, rows)
	p.Each(cut(rows), l.fwd)
	return l.y, nil
}

func (l *LayerNorm) forward(_, part int) {
	lo, hi := bounds(len(l.center), part)
	for i := lo; i < hi; i++ {
		x, y := l.x[i*l.width:][:l.width], l.y[i*l.width:][:l.width]
		s, ss := moments(x)
		mean := s / float64(l.width)
		inv := 1 / math.Sqrt(max(0, ss/float64(l.width)-mean*mean)+l.Eps)
		l.center[i], l.inv[i] = float32(mean), float32(inv)
		for j, v := range x {
			y[j] = (v-l.center[i])*l.inv[i]*l.w.Value[j] + l.bias.Value[j]
		}
	}
}

// Backward is Layer's.
func (l *LayerNorm) Backward(p *Pass, dy []float32) ([]float32, error) {
	l.dy = dy
	k := cut(len(l.center))
	l.shares = p.shares(k, 2*l.width)
	p.Each(k, l.back)
	l.shares.into(p, l.bias.Grad, 0)
	l.shares.into(p, l.w.Grad, l.width)
	p.Ready(l.bias)
	p.Ready(l.w)
	return dy, nil
}

func (l *LayerNorm) backward(_, part int) {
	lo, hi := bounds(len(l.center), part)
	row := l.shares.row(part)
	clear(row)
	dbias, dw := row[:l.width], row[l.width:]
	for i := lo; i < hi; i++ {
		x, dy := l.x[i*l.width:][:l.width], l.dy[i*l.width:][:l.width]
		center, inv := l.center[i], l.inv[i]
		var s, sx float64 // of w·dy, and of that times x̂
		for j, v := range dy {
			xhat := (x[j] - center) * inv
			dbias[j] += v
			dw[j] += v * xhat
			v *= l.w.Value[j]
			s += float64(v)
			sx += float64(v) * float64(xhat)
		}
		mean, slope := float32(s/float64(l.width)), float32(sx/float64(l.width))
		for j, v := range dy {
			dy[j] = inv * (v*l.w.Value[j] - mean - (x[j]-center)*inv*slope)
		}
	}
}
