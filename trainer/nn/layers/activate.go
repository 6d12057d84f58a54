package layers

import "math"

// A ReLU is max(x, 0). A NaN stays one, so that a run that diverges says so in its
// loss.
type ReLU struct{ elementwise }

// Init is Layer's.
func (l *ReLU) Init(_ *Builder, in Shape) (Shape, error) {
	l.init(
		func(y, x []float32) {
			for i, v := range x {
				y[i] = max(v, 0)
			}
		},
		func(dy, x []float32) {
			for i, v := range x { // a mask, as nothing predicts a sign
				closed := uint32((int64(int32(math.Float32bits(v))) - 1) >> 63) // all ones, or zero
				dy[i] = math.Float32frombits(math.Float32bits(dy[i]) &^ closed)
			}
		})
	return in, nil
}

// A GELU is x·Φ(x), Φ being the normal distribution's, with Tanh the approximation
// that GPT-2 was trained with (Hendrycks and Gimpel, 2016): torch.nn.GELU.
type GELU struct {
	Tanh bool // about ten times as fast, and off by at most 5e-4

	elementwise
}

// Init is Layer's.
func (l *GELU) Init(_ *Builder, in Shape) (Shape, error) {
	if l.Tanh {
		l.init(geluTanh, geluTanhBack)
	} else {
		l.init(gelu, geluBack)
	}
	return in, nil
}

func gelu(y, x []float32) {
	for i, v := range x {
		y[i] = float32(0.5 * float64(v) * math.Erfc(-float64(v)/math.Sqrt2))
	}
}

func geluBack(dy, x []float32) {
	for i, v := range x {
		v := float64(v)
		density := math.Exp(-v*v/2) / math.Sqrt(2*math.Pi)
		dy[i] *= float32(0.5*math.Erfc(-v/math.Sqrt2) + v*density)
	}
}

const (
	geluScale = 0.7978845608028654 // √(2/π)
	geluCubic = 0.044715
)

func geluTanh(y, x []float32) {
	for i, v := range x {
		y[i] = 0.5 * v * (1 + tanh32(geluScale*(v+geluCubic*v*v*v)))
	}
}

func geluTanhBack(dy, x []float32) {
	for i, v := range x {
		t := tanh32(geluScale * (v + geluCubic*v*v*v))
		dy[i] *= 0.5*(1+t) + 0.5*v*(1-t*t)*geluScale*(1+3*geluCubic*v*v)
	}
}

// elementwise is a layer of a function of each float. Backward multiplies in place.
type elementwise struct {
	f, back  func(y, x []float32)
	x, y, dy []float32
	fwd, bwd func(worker, part int)
}

func (l *elementwise) init(f, back func(y, x []float32)) {
	l.f, l.back = f, back
	l.fwd, l.bwd = l.forwardPart, l.backwardPart
}

// Forward is Layer's.
func (l *elementwise) Forward(p *Pass, x []float32) ([]float32, error) {
	l.x, l.y = x, grow(l.y, len(x))
	p.Each(cut(len(x)), l.fwd)
	return l.y, nil
}

// Backward is Layer's.
func (l *elementwise) Backward(p *Pass, dy []float32) ([]float32, error) {
	l.dy = dy
	p.Each(cut(len(dy)), l.bwd)
	return dy, nil
}

func (l *elementwise) forwardPart(_, part int) {
	lo, hi := bounds(len(l.x), part)
	l.f(l.y[lo:hi], l.x[lo:hi])
}

func (l *elementwise) backwardPart(_, part int) {
	lo, hi := bounds(len(l.dy), part)
	l.back(l.dy[lo:hi], l.x[lo:hi])
}
