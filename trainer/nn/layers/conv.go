package layers

import (
	"fmt"

	"peermesh/trainer/nn/internal/kern"
)

// MaxKernel bounds a kernel's side, its stride and its padding.
const MaxKernel = 64

// A Conv2d is torch.nn.Conv2d with square kernels: images of channels×height×width
// become images of Out×((height+2·Padding-Kernel)/Stride+1)×…, of zeros beyond the
// border. The weight is Out×channels×Kernel×Kernel; initial values are uniform
// within ±1/√(channels·Kernel²).
//
// It is direct, for any stride: see plane.go.
type Conv2d struct {
	Out, Kernel     int
	Stride, Padding int // a Stride of zero is 1
	NoBias          bool

	planes
	engine   kern.Engine
	raw      bool
	w, bias  *Weight
	forwardW kern.Packed   // Out×(channels·Kernel²)
	backW    []kern.Packed // by phase: channels×(Out·taps of the phase)
	local    []convScratch

	x, y, dy, dx           []float32
	perPart                int // Sums of one part
	shares                 *folding
	sums                   []kern.Sums
	fwd, bwd, gather, pack func(worker, part int)
}

// A convScratch is a worker's: a group of samples at a time stays in its cache.
type convScratch struct {
	in   []float32 // phases of the input, behind padding
	wide []float32 // the output, in rows as long as theirs
	dy   []float32 // its gradient, likewise
	dx   []float32 // of one phase
}

// Init is Layer's.
func (l *Conv2d) Init(b *Builder, in Shape) (Shape, error) {
	g, err := newGeometry(in, l.Kernel, l.Stride, l.Padding)
	if err != nil || l.Out < 1 || l.Out > MaxWidth {
		return nil, fmt.Errorf("layers: %sConv2d of %d channels: %v", b.prefix, l.Out, err)
	}
	l.planes = newPlanes(g, l.Out)
	l.engine, l.raw = b.engine, b.raw
	fan := g.c * g.k * g.k
	l.w = b.Weight("weight", fanIn(fan), l.Out, g.c, g.k, g.k)
	if !l.NoBias {
		l.bias = b.Weight("bias", fanIn(fan), l.Out)
	}
	l.backW = make([]kern.Packed, g.phases*g.phases)
	l.local = make([]convScratch, b.Threads())
	for i := range l.local {
		l.local[i] = convScratch{
			in:   make([]float32, l.inLen()),
			wide: make([]float32, l.Out*l.columns(l.group)),
			dy:   make([]float32, l.dyLen()),
			dx:   make([]float32, g.c*l.columnsBack(l.group)),
		}
	}
	l.perPart = (l.Out + 3) / 4 * ((fan + 2) / 3)
	l.fwd, l.bwd, l.gather, l.pack = l.forward, l.backward, l.gatherPart, l.packPhase
	return Shape{l.Out, g.oh, g.ow}, nil
}

// Forward is Layer's.
func (l *Conv2d) Forward(p *Pass, x []float32) ([]float32, error) {
	l.x, l.y = x, grow(l.y, p.N*l.Out*l.oh*l.ow)
	fan := l.taps.Len()
	l.forwardW.Reset(l.Out, fan)
	l.forwardW.Set(0, fan, l.w.Value, fan, 1)
	if l.bias != nil {
		l.forwardW.Start(l.bias.Value)
	}
	p.Each(cut(p.N), l.fwd)
	return l.y, nil
}

func (l *Conv2d) samples() int { return len(l.x) / (l.c * l.h * l.wd) }

func (l *Conv2d) forward(worker, part int) {
	lo, hi := bounds(l.samples(), part)
	s := &l.local[worker]
	for ; lo < hi; lo += l.group {
		n := min(l.group, hi-lo)
		for i := range n {
			l.split(s.in, l.x, lo+i, i)
		}
		ldc := l.columns(n)
		l.engine.Mul(s.wide, ldc, ldc, &l.forwardW, s.in, l.taps)
		for i := range n {
			l.pick(l.y, s.wide, ldc, lo+i, i)
		}
	}
}

// Backward is Layer's.
func (l *Conv2d) Backward(p *Pass, dy []float32) ([]float32, error) {
	l.dy = dy
	if !l.raw {
		l.dx = grow(l.dx, len(l.x))
		p.Each(len(l.backW), l.pack)
	}
	k := cut(p.N)
	p.net.sums = grow(p.net.sums, k*l.perPart)
	l.sums = p.net.sums
	l.shares = p.shares(k, l.Out)
	p.Each(k, l.bwd)
	p.Each(cut(l.Out), l.gather)
	p.Ready(l.w)
	if l.bias != nil {
		l.shares.into(p, l.bias.Grad, 0)
		p.Ready(l.bias)
	}
	if l.raw {
		return nil, nil
	}
	return l.dx, nil
}

// packPhase packs the weights of the taps that read a phase; channels in and out
// change places.
func (l *Conv2d) packPhase(_, phase int) {
	taps, fan, kk := l.phaseTaps[phase], l.taps.Len(), l.k*l.k
	w := &l.backW[phase]
	w.Reset(l.c, l.Out*len(taps))
	for o := range l.Out {
		for i, tap := range taps {
			w.Set(o*len(taps)+i, 1, l.w.Value[o*fan+tap:], kk, 0)
		}
	}
}

func (l *Conv2d) backward(worker, part int) {
	lo, hi := bounds(l.samples(), part)
	s, sums, bias := &l.local[worker], l.sums[part*l.perPart:][:l.perPart], l.shares.row(part)
	clear(sums)
	clear(bias)
	for ; lo < hi; lo += l.group {
		n := min(l.group, hi-lo)
		for i := range n {
			l.split(s.in, l.x, lo+i, i)
			l.spread(s.dy, l.dy, lo+i, i, bias)
		}
		l.correlate(sums, s.dy, s.in, n)
		if l.raw {
			continue
		}
		for phase := range l.backW {
			taps := len(l.phaseTaps[phase])
			if taps == 0 {
				continue
			}
			ldc := l.columnsBack(n)
			l.engine.Mul(s.dx, ldc, ldc, &l.backW[phase], s.dy, l.back[phase])
			for i := range n {
				l.join(l.dx, s.dx, ldc, phase, lo+i, i)
			}
		}
	}
}

// correlate adds n samples' part of the weights' gradient, the products of each
// plane of the gradient with each view of the input. What a view has in the columns
// between two rows of the gradient meets zeros. A group of channels or taps that is
// not full repeats its last one.
func (l *Conv2d) correlate(sums []kern.Sums, dy, in []float32, n int) {
	last := l.taps.Len() - 1
	for o := 0; o < l.Out; o += 4 {
		var rows [4]int
		for r := range rows {
			rows[r] = l.dyAt(min(o+r, l.Out-1))
		}
		for t := 0; t <= last; t += 3 {
			views := [3]int{l.taps.At(t), l.taps.At(min(t+1, last)), l.taps.At(min(t+2, last))}
			l.engine.Dot(&sums[0], l.span(n), dy, &rows, in, &views)
			sums = sums[1:]
		}
	}
}

// gatherPart adds up the parts' sums for some of the channels.
func (l *Conv2d) gatherPart(_, part int) {
	fan := l.taps.Len()
	triples := (fan + 2) / 3
	lo, hi := bounds(l.Out, part)
	k := cut(l.samples())
	for o := lo; o < hi; o++ {
		for t := range fan {
			var v float32
			for s := range k {
				v += l.sums[s*l.perPart+o/4*triples+t/3].Sum(o%4, t%3)
			}
			l.w.Grad[o*fan+t] = v
		}
	}
}
