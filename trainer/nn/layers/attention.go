package layers

import (
	"fmt"
	"math"

	"peermesh/trainer/nn/internal/kern"
)

// MaxPositions bounds the length of a sequence.
const MaxPositions = 1 << 14

// A SelfAttention lets each position of a sequence, {positions, features}, look at
// itself and those before it: Vaswani et al., 2017; torch.nn.MultiheadAttention with
// a causal mask, or with All without one, with its names and initial values. The
// features are cut into Heads, which divides them.
type SelfAttention struct {
	Heads int
	All   bool // positions look at those after them, too

	engine            kern.Engine
	positions, width  int
	head              int // features of one
	project, output   linear
	local             []attentionScratch
	strided, plain    kern.Offsets // rows of projections, and of outputs
	within            kern.Offsets // rows as long as a sequence
	probs             []float32    // sample by head by position by position
	qkv, y, dqkv, dy  []float32
	forward, backward func(worker, part int)
}

// An attentionScratch is a worker's, for one head of one sample.
type attentionScratch struct {
	a      kern.Packed
	turned []float32 // keys or values, with a row for each feature
	square []float32 // positions by positions
}

// Init is Layer's.
func (l *SelfAttention) Init(b *Builder, in Shape) (Shape, error) {
	if len(in) != 2 || l.Heads < 1 || in[1]%l.Heads != 0 || in[0] > MaxPositions || in[1] > MaxWidth {
		return nil, fmt.Errorf("layers: %sSelfAttention of %d heads over %v: want positions, features for heads to share", b.prefix, l.Heads, in)
	}
	l.engine = b.engine
	l.positions, l.width = in[0], in[1]
	l.head = l.width / l.Heads
	w := b.Weight("in_proj_weight", xavier(l.width, 3*l.width), 3*l.width, l.width)
	l.project.init(b, w, b.Weight("in_proj_bias", Constant(0), 3*l.width), false, l.width, 3*l.width)
	raw := b.raw
	b.raw = false
	w = b.Weight("out_proj.weight", fanIn(l.width), l.width, l.width)
	l.output.init(b, w, b.Weight("out_proj.bias", Constant(0), l.width), false, l.width, l.width)
	b.raw = raw
	l.strided, l.plain = kern.Every(l.positions, 3*l.width), kern.Every(l.positions, l.width)
	l.within = kern.Every(l.head, l.positions)
	l.local = make([]attentionScratch, b.Threads())
	for i := range l.local {
		l.local[i] = attentionScratch{
			turned: make([]float32, l.head*l.positions),
			square: make([]float32, l.positions*l.positions),
		}
	}
	l.forward, l.backward = l.forwardPart, l.backwardPart
	return in, nil
}

// Forward is Layer's.
func (l *SelfAttention) Forward(p *Pass, x []float32) ([]float32, error) {
	l.qkv = l.project.run(p, x)
	l.y = grow(l.y, len(x))
	heads := p.N * l.Heads
	l.probs = grow(l.probs, heads*l.positions*l.positions)
	p.Each(cut(heads), l.forward)
	return l.output.run(p, l.y), nil
}

// Backward is Layer's.
func (l *SelfAttention) Backward(p *Pass, dy []float32) ([]float32, error) {
	l.dy = l.output.back(p, dy)
	l.dqkv = grow(l.dqkv, len(l.qkv))
	p.Each(cut(p.N*l.Heads), l.backward)
	return l.project.back(p, l.dqkv), nil
}

// heads are the bounds of a part of all heads of all samples.
func (l *SelfAttention) heads(part int) (lo, hi int) {
	return bounds(len(l.y)/(l.positions*l.head), part)
}

// at is where a head's queries start in its sample's projections, and its features
// in the sample's output; keys and values are width floats further on each.
func (l *SelfAttention) at(i int) (projected, out int) {
	sample, head := i/l.Heads, i%l.Heads
	row := sample * l.positions
	return row*3*l.width + head*l.head, row*l.width + head*l.head
}

// turn transposes the positions' rows of x, stride floats apart, into to.
func (l *SelfAttention) turn(to, x []float32, stride int) {
	for i := range l.positions {
		for j, v := range x[i*stride:][:l.head] {
			to[j*l.positions+i] = v
		}
	}
}

func (l *SelfAttention) forwardPart(worker, part int) {
	lo, hi := l.heads(part)
	s, t, stride := &l.local[worker], l.positions, 3*l.width
	for i := lo; i < hi; i++ {
		at, out := l.at(i)
		q, k, v := l.qkv[at:], l.qkv[at+l.width:], l.qkv[at+2*l.width:]
		probs := l.probs[i*t*t:][:t*t]
		l.turn(s.turned, k, stride)
		s.a.Reset(t, l.head)
		s.a.Set(0, l.head, q, stride, 1)
		l.engine.Mul(probs, t, t, &s.a, s.turned, l.within)
		for r := range t {
			l.softmax(probs[r*t:][:t], r)
		}
		s.a.Reset(t, t)
		s.a.Set(0, t, probs, t, 1)
		l.engine.Mul(l.y[out:], l.width, l.head, &s.a, v, l.strided)
	}
}

// softmax makes of position r's scores the weights of the positions it looks at.
func (l *SelfAttention) softmax(row []float32, r int) {
	seen := row[:r+1]
	if l.All {
		seen = row
	}
	scale := float32(1 / math.Sqrt(float64(l.head)))
	top := seen[0]
	for _, v := range seen {
		top = max(top, v)
	}
	var sum float32
	for j, v := range seen {
		e := exp32((v - top) * scale)
		seen[j] = e
		sum += e
	}
	for j := range seen {
		seen[j] /= sum
	}
	clear(row[len(seen):])
}

// backwardPart follows from y = P·V and P = softmax(Q·Kᵀ/√head).
func (l *SelfAttention) backwardPart(worker, part int) {
	lo, hi := l.heads(part)
	s, t, stride := &l.local[worker], l.positions, 3*l.width
	for i := lo; i < hi; i++ {
		at, out := l.at(i)
		q, k, v := l.qkv[at:], l.qkv[at+l.width:], l.qkv[at+2*l.width:]
		dq, dk, dv := l.dqkv[at:], l.dqkv[at+l.width:], l.dqkv[at+2*l.width:]
		probs, dy := l.probs[i*t*t:][:t*t], l.dy[out:]

		s.a.Reset(t, t) // dV = Pᵀ·dy
		s.a.Set(0, t, probs, 1, t)
		l.engine.Mul(dv, stride, l.head, &s.a, dy, l.plain)

		l.turn(s.turned, v, stride) // dP = dy·Vᵀ
		s.a.Reset(t, l.head)
		s.a.Set(0, l.head, dy, l.width, 1)
		l.engine.Mul(s.square, t, t, &s.a, s.turned, l.within)
		for r := range t {
			l.softmaxBack(s.square[r*t:][:t], probs[r*t:][:t])
		}

		s.a.Reset(t, t) // dQ = dS·K
		s.a.Set(0, t, s.square, t, 1)
		l.engine.Mul(dq, stride, l.head, &s.a, k, l.strided)
		s.a.Set(0, t, s.square, 1, t) // dK = dSᵀ·Q
		l.engine.Mul(dk, stride, l.head, &s.a, q, l.strided)
	}
}

// softmaxBack turns the gradient of a row of weights into that of the scores.
func (l *SelfAttention) softmaxBack(d, p []float32) {
	scale := float32(1 / math.Sqrt(float64(l.head)))
	var s float32
	for j, v := range p {
		s += v * d[j]
	}
	for j, v := range p {
		d[j] = v * (d[j] - s) * scale
	}
}
