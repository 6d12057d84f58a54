package layers

import (
	"fmt"
	"strconv"
)

// Sequential is layers one after another. Their names are their places, from "0",
// unless they are Named.
type Sequential []Layer

// Named gives a layer another name in a Sequential or Residual. An empty one puts
// the names of what is in it where its own would be.
type Named struct {
	Name string
	Layer
}

// Init is Layer's.
func (n Named) Init(b *Builder, in Shape) (Shape, error) { return b.Child(n.Name, n.Layer, in) }

// Init is Layer's.
func (s Sequential) Init(b *Builder, in Shape) (Shape, error) {
	raw := b.raw
	defer func() { b.raw = raw }()
	for i, l := range s {
		name := strconv.Itoa(i)
		if _, ok := l.(Named); ok {
			name = ""
		}
		out, err := b.Child(name, l, in)
		if err != nil {
			return nil, err
		}
		in, b.raw = out, false
	}
	return in, nil
}

// Forward is Layer's.
func (s Sequential) Forward(p *Pass, x []float32) (_ []float32, err error) {
	for _, l := range s {
		if err := p.alive("forward"); err != nil {
			return nil, err
		}
		if x, err = l.Forward(p, x); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// Backward is Layer's.
func (s Sequential) Backward(p *Pass, dy []float32) (_ []float32, err error) {
	for i := len(s) - 1; i >= 0; i-- {
		if err := p.alive("backward"); err != nil {
			return nil, err
		}
		if dy, err = s[i].Backward(p, dy); err != nil {
			return nil, err
		}
	}
	return dy, nil
}

// A Residual is Body(x) + Shortcut(x), where a Shortcut of nil is x itself (He et
// al., "Deep Residual Learning", 2015). Both give one shape.
type Residual struct {
	Body     Layer
	Shortcut Layer

	raw           bool
	own           []float32 // dy for the shortcut, which the body might overwrite
	x, y, dx, dy  []float32
	sum, add, dup func(worker, part int)
}

// Init is Layer's. Body's names are not below another, nor are Shortcut's: let the
// latter be Named.
func (l *Residual) Init(b *Builder, in Shape) (Shape, error) {
	l.raw = b.raw
	l.sum, l.add, l.dup = l.sumPart, l.addPart, l.dupPart
	out, err := b.Child("", l.Body, in)
	if err != nil {
		return nil, err
	}
	other := in
	if l.Shortcut != nil {
		if other, err = b.Child("", l.Shortcut, in); err != nil {
			return nil, err
		}
	}
	if fmt.Sprint(out) != fmt.Sprint(other) {
		return nil, fmt.Errorf("layers: %s: a residual of %v beside a shortcut of %v", b.prefix, out, other)
	}
	return out, nil
}

// Forward is Layer's.
func (l *Residual) Forward(p *Pass, x []float32) (_ []float32, err error) {
	short := x
	if l.Shortcut != nil {
		if short, err = l.Shortcut.Forward(p, x); err != nil {
			return nil, err
		}
	}
	body, err := l.Body.Forward(p, x)
	if err != nil {
		return nil, err
	}
	l.y = grow(l.y, len(body))
	l.x, l.dx = short, body
	p.Each(cut(len(l.y)), l.sum)
	return l.y, nil
}

func (l *Residual) sumPart(_, part int) {
	lo, hi := bounds(len(l.y), part)
	a, b := l.x[lo:hi], l.dx[lo:hi]
	for i, y := 0, l.y[lo:hi]; i < len(y); i++ {
		y[i] = a[i] + b[i]
	}
}

// Backward is Layer's.
func (l *Residual) Backward(p *Pass, dy []float32) (_ []float32, err error) {
	l.own = grow(l.own, len(dy))
	l.dy = dy
	p.Each(cut(len(dy)), l.dup)
	dx, err := l.Body.Backward(p, dy)
	if err != nil {
		return nil, err
	}
	short := l.own
	if l.Shortcut != nil {
		if short, err = l.Shortcut.Backward(p, short); err != nil {
			return nil, err
		}
	}
	if l.raw {
		return nil, nil
	}
	l.dx, l.dy = dx, short
	p.Each(cut(len(dx)), l.add)
	return dx, nil
}

func (l *Residual) dupPart(_, part int) {
	lo, hi := bounds(len(l.dy), part)
	copy(l.own[lo:hi], l.dy[lo:hi])
}

func (l *Residual) addPart(_, part int) {
	lo, hi := bounds(len(l.dx), part)
	dx := l.dx[lo:hi]
	for i, v := range l.dy[lo:hi] {
		dx[i] += v
	}
}

// Flatten makes a vector of a sample, as a Linear after a convolution needs it.
type Flatten struct{}

// Init is Layer's.
func (Flatten) Init(_ *Builder, in Shape) (Shape, error) { return Shape{in.Len()}, nil }

// Forward is Layer's.
func (Flatten) Forward(_ *Pass, x []float32) ([]float32, error) { return x, nil }

// Backward is Layer's.
func (Flatten) Backward(_ *Pass, dy []float32) ([]float32, error) { return dy, nil }
