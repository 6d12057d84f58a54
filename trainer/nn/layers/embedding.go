package layers

import "fmt"

// An Embedding looks up rows of a table: each float of its input, which is a whole
// number below Rows, becomes Width floats. It is torch.nn.Embedding; initial values
// are normal with the deviation Deviation. Its gradient has every row, those that
// were not looked up as zeros: sums over ranks need no common list of rows.
type Embedding struct {
	Rows, Width int
	Deviation   float64 // zero: 1

	w      *Weight
	lent   bool // a Linear has its part of the gradient there first
	x      []float32
	y, dy  []float32
	fwd    func(worker, part int)
	back   func(worker, part int)
	errors [parts]error
}

// Init is Layer's.
func (l *Embedding) Init(b *Builder, in Shape) (Shape, error) {
	if l.Rows < 1 || l.Rows > 1<<24 || l.Width < 1 || l.Width > MaxWidth {
		return nil, fmt.Errorf("layers: %sEmbedding of %d rows of %d", b.prefix, l.Rows, l.Width)
	}
	if !b.raw {
		return nil, fmt.Errorf("layers: %sEmbedding: its input is another layer's output, want the batch", b.prefix)
	}
	if l.Deviation == 0 {
		l.Deviation = 1
	}
	l.w = b.Weight("weight", Normal(l.Deviation), l.Rows, l.Width)
	l.fwd, l.back = l.forward, l.backward
	return append(in[:len(in):len(in)], l.Width), nil
}

// lend gives the table to a Linear that comes after.
func (l *Embedding) lend() *Weight {
	l.lent = l.w != nil
	return l.w
}

// Forward is Layer's. What is not a row is an error.
func (l *Embedding) Forward(p *Pass, x []float32) ([]float32, error) {
	l.x, l.y = x, grow(l.y, len(x)*l.Width)
	clear(l.errors[:])
	p.Each(cut(len(x)), l.fwd)
	for _, err := range l.errors {
		if err != nil {
			return nil, err
		}
	}
	return l.y, nil
}

func (l *Embedding) forward(_, part int) {
	lo, hi := bounds(len(l.x), part)
	for i := lo; i < hi; i++ {
		v := l.x[i]
		if !(v >= 0 && v < float32(l.Rows)) || v != float32(int(v)) {
			l.errors[part] = fmt.Errorf("layers: %s: looks up %v, want a whole number below %d", l.w.Param.Name, v, l.Rows)
			return
		}
		copy(l.y[i*l.Width:][:l.Width], l.w.Value[int(v)*l.Width:])
	}
}

// Backward is Layer's.
func (l *Embedding) Backward(p *Pass, dy []float32) ([]float32, error) {
	l.dy = dy
	p.Each(parts, l.back)
	p.Ready(l.w)
	return nil, nil
}

// backward does a part of the table's columns, which is why the order of the sums
// depends on nothing.
func (l *Embedding) backward(_, part int) {
	lo, hi := l.Width*part/parts, l.Width*(part+1)/parts
	if lo == hi {
		return
	}
	if !l.lent {
		for r := range l.Rows {
			clear(l.w.Grad[r*l.Width+lo : r*l.Width+hi])
		}
	}
	for i, v := range l.x {
		to, from := l.w.Grad[int(v)*l.Width+lo:int(v)*l.Width+hi], l.dy[i*l.Width+lo:]
		for j := range to {
			to[j] += from[j]
		}
	}
}

// A Position adds a learnt vector to each position of a sequence, {positions,
// features}. Its weight has that shape, and is that of an Embedding of the
// positions in PyTorch.
type Position struct {
	Deviation float64 // zero: 1

	w         *Weight
	size      int
	x, y, dy  []float32
	fwd, back func(worker, part int)
}

// Init is Layer's.
func (l *Position) Init(b *Builder, in Shape) (Shape, error) {
	if len(in) != 2 {
		return nil, fmt.Errorf("layers: %sPosition: its input is %v, want positions, features", b.prefix, in)
	}
	if l.Deviation == 0 {
		l.Deviation = 1
	}
	l.w, l.size = b.Weight("weight", Normal(l.Deviation), in...), in.Len()
	l.fwd, l.back = l.forward, l.backward
	return in, nil
}

// Forward is Layer's.
func (l *Position) Forward(p *Pass, x []float32) ([]float32, error) {
	l.x, l.y = x, grow(l.y, len(x))
	p.Each(cut(p.N), l.fwd)
	return l.y, nil
}

func (l *Position) forward(_, part int) {
	lo, hi := bounds(len(l.x)/l.size, part)
	for i := lo; i < hi; i++ {
		x, y := l.x[i*l.size:][:l.size], l.y[i*l.size:][:l.size]
		for j, v := range l.w.Value {
			y[j] = x[j] + v
		}
	}
}

// Backward is Layer's.
func (l *Position) Backward(p *Pass, dy []float32) ([]float32, error) {
	l.dy = dy
	p.Each(cut(l.size), l.back)
	p.Ready(l.w)
	return dy, nil
}

func (l *Position) backward(_, part int) {
	lo, hi := bounds(l.size, part)
	to := l.w.Grad[lo:hi]
	clear(to)
	for at := 0; at < len(l.dy); at += l.size {
		for j, v := range l.dy[at+lo : at+hi] {
			to[j] += v
		}
	}
}
