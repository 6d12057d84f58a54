package layers

import (
	"fmt"

	"peermesh/trainer/nn/internal/kern"
)

// MaxWidth bounds the features of a layer's input or output.
const MaxWidth = 1 << 20

// A Linear is y = x·Wᵀ + b along the innermost dimension: torch.nn.Linear, whose
// weight is Out×In. Its initial values are uniform within ±1/√In.
type Linear struct {
	Out    int
	NoBias bool
	// Tied lends the weight of an Embedding that comes before: Out is then its Rows,
	// and only the bias is the layer's own (Press and Wolf, 2017).
	Tied *Embedding

	core linear
}

// Init is Layer's.
func (l *Linear) Init(b *Builder, in Shape) (Shape, error) {
	if len(in) == 0 || l.Out < 1 || l.Out > MaxWidth || in.last() > MaxWidth {
		return nil, fmt.Errorf("layers: %sLinear of %d features from %v", b.prefix, l.Out, in)
	}
	var w *Weight
	if e := l.Tied; e != nil {
		if w = e.lend(); w == nil || e.Rows != l.Out || e.Width != in.last() {
			return nil, fmt.Errorf("layers: %sLinear: tied to an embedding that is not before it, or not %d×%d", b.prefix, l.Out, in.last())
		}
	} else {
		w = b.Weight("weight", fanIn(in.last()), l.Out, in.last())
	}
	var bias *Weight
	if !l.NoBias {
		bias = b.Weight("bias", fanIn(in.last()), l.Out)
	}
	l.core.init(b, w, bias, l.Tied != nil, in.last(), l.Out)
	return in.with(l.Out), nil
}

// Forward is Layer's.
func (l *Linear) Forward(p *Pass, x []float32) ([]float32, error) { return l.core.run(p, x), nil }

// Backward is Layer's.
func (l *Linear) Backward(p *Pass, dy []float32) ([]float32, error) { return l.core.back(p, dy), nil }

// blockRows is how many rows of x are packed at once, to stay in a worker's cache.
const blockRows = 64

// A linear is Linear's work, and that of the projections around an attention.
type linear struct {
	engine    kern.Engine
	ins, outs int
	wide      int // the row length of wt: outs, or a whole tile
	w, bias   *Weight
	tied, raw bool

	wt    []float32    // Wᵀ, and the bias as a last row that meets ones
	wtAt  kern.Offsets // where its rows start
	wAt   kern.Offsets // where W's do
	local []linearScratch

	rows      kern.Offsets // of as many rows of x as the largest part had
	n         int          // rows of the batch
	x, y      []float32
	dy, dx    []float32
	shares    *folding
	fwd, bwd  func(worker, part int)
	transpose func(worker, part int)
}

// A linearScratch is a worker's own.
type linearScratch struct {
	a, dyT kern.Packed
	y      []float32 // a block of outputs narrower than a tile
}

func (l *linear) init(b *Builder, w, bias *Weight, tied bool, ins, outs int) {
	l.engine, l.ins, l.outs, l.wide = b.engine, ins, outs, max(outs, kern.Cols)
	l.w, l.bias, l.tied, l.raw = w, bias, tied, b.raw
	l.wt = make([]float32, (ins+1)*l.wide)
	l.wtAt, l.wAt = kern.Every(ins+1, l.wide), kern.Every(outs, ins)
	l.local = make([]linearScratch, b.Threads())
	l.fwd, l.bwd, l.transpose = l.forward, l.backward, l.transposePart
}

func (l *linear) run(p *Pass, x []float32) []float32 {
	l.n, l.x = len(x)/l.ins, x
	l.y = grow(l.y, l.n*l.outs)
	p.Each(cut(l.ins), l.transpose)
	if l.bias != nil {
		copy(l.wt[l.ins*l.wide:], l.bias.Value)
	}
	p.Each(cut(l.n), l.fwd)
	return l.y
}

func (l *linear) transposePart(_, part int) {
	lo, hi := bounds(l.ins, part)
	for o := range l.outs {
		for i, v := range l.w.Value[o*l.ins+lo : o*l.ins+hi] {
			l.wt[(lo+i)*l.wide+o] = v
		}
	}
}

var one = []float32{1}

func (l *linear) forward(worker, part int) {
	lo, hi := bounds(l.n, part)
	s := &l.local[worker]
	for ; lo < hi; lo += blockRows {
		n := min(blockRows, hi-lo)
		s.a.Reset(n, l.ins+1)
		s.a.Set(0, l.ins, l.x[lo*l.ins:], l.ins, 1)
		s.a.Set(l.ins, 1, one, 0, 0)
		if l.wide == l.outs {
			l.engine.Mul(l.y[lo*l.outs:], l.outs, l.outs, &s.a, l.wt, l.wtAt)
			continue
		}
		s.y = grow(s.y, n*l.wide)
		l.engine.Mul(s.y, l.wide, l.wide, &s.a, l.wt, l.wtAt)
		for r := range n {
			copy(l.y[(lo+r)*l.outs:][:l.outs], s.y[r*l.wide:])
		}
	}
}

// back turns dy into dx, which the next call overwrites, and is done with the
// gradients of the weight and the bias.
func (l *linear) back(p *Pass, dy []float32) []float32 {
	l.dy = dy
	if !l.raw {
		l.dx = grow(l.dx, l.n*l.ins)
	}
	if most := (l.n + parts - 1) / parts; l.rows.Len() < most {
		l.rows = kern.Every(most, l.ins)
	}
	k := cut(l.n)
	l.shares = p.shares(k, l.outs*(l.ins+1))
	p.Each(k, l.bwd)
	l.shares.into(p, l.w.Grad, 0)
	if !l.tied { // or else the embedding adds its own
		p.Ready(l.w)
	}
	if l.bias != nil {
		l.shares.into(p, l.bias.Grad, l.outs*l.ins)
		p.Ready(l.bias)
	}
	if l.raw {
		return nil
	}
	return l.dx
}

func (l *linear) backward(worker, part int) {
	lo, hi := bounds(l.n, part)
	s, row := &l.local[worker], l.shares.row(part)
	s.dyT.Reset(l.outs, hi-lo)
	s.dyT.Set(0, hi-lo, l.dy[lo*l.outs:], 1, l.outs)
	l.engine.Mul(row, l.ins, l.ins, &s.dyT, l.x[lo*l.ins:], l.rows.First(hi-lo))
	sums := row[l.outs*l.ins:]
	clear(sums)
	for i := lo; i < hi; i++ {
		for o, v := range l.dy[i*l.outs:][:l.outs] {
			sums[o] += v
		}
	}
	if l.raw {
		return
	}
	for ; lo < hi; lo += blockRows {
		n := min(blockRows, hi-lo)
		s.a.Reset(n, l.outs)
		s.a.Set(0, l.outs, l.dy[lo*l.outs:], l.outs, 1)
		l.engine.Mul(l.dx[lo*l.ins:], l.ins, l.ins, &s.a, l.w.Value, l.wAt)
	}
}
