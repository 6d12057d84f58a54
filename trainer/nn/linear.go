package nn

import "peermesh/trainer/nn/internal/kern"

// A linear layer is y = x·Wᵀ + b, W being outs×ins. Both rows of x and rows of W
// are inputs long, so forward is dot products of rows, and backward, where they
// are multiplied by columns of gradients, is products of matrices.
type linear struct {
	engine    kern.Engine
	ins, outs int
	weights

	rows    kern.Offsets  // where W's rows start
	most    kern.Offsets  // where samples' inputs start, for the largest batch so far
	samples kern.Offsets  // those of this batch
	dyT     kern.Packed   // the gradient of y, outs×samples
	local   []kern.Packed // a worker's: a shard of the gradient, samples×outs
}

func newLinear(e kern.Engine, workers, ins, outs int) *linear {
	return &linear{
		engine: e, ins: ins, outs: outs,
		weights: weights{shape: []int{outs, ins}},
		rows:    kern.Every(outs, ins),
		local:   make([]kern.Packed, workers),
	}
}

func (l *linear) size() (ins, outs int) { return l.ins, l.outs }

func (l *linear) prepare(n, _ int, train bool) {
	if !train {
		return
	}
	if l.most.Len() < n {
		l.most = kern.Every(n, l.ins)
	}
	l.samples = l.most.First(n)
	l.dyT.Reset(l.outs, n)
}

// forward takes four samples by three outputs at a time. Where fewer are left the
// last ones stand in, and their sums are dropped.
func (l *linear) forward(_ int, x, y []float32, lo, hi int) {
	for i := lo; i < hi; i += kern.Rows {
		x := x[i*l.ins : min(i+kern.Rows, hi)*l.ins]
		last := min(kern.Rows, hi-i) - 1
		ra := [4]int{0, min(1, last) * l.ins, min(2, last) * l.ins, last * l.ins}
		for o := 0; o < l.outs; o += 3 {
			var s kern.Sums
			b1, b2 := min(o+1, l.outs-1), min(o+2, l.outs-1)
			l.engine.Dot(&s, l.ins, x, &ra, l.val, &[3]int{o * l.ins, b1 * l.ins, b2 * l.ins})
			for r := range last + 1 {
				for q := range min(3, l.outs-o) {
					y[(i+r)*l.outs+o+q] = s.Sum(r, q) + l.bias[o+q]
				}
			}
		}
	}
}

// backward leaves the weights' gradient to finish: unlike a convolution's, it is
// large, and a sum for each shard would cost more than it divides.
func (l *linear) backward(worker, _ int, x, dy, dx []float32, lo, hi int) {
	share := dy[lo*l.outs : hi*l.outs]
	l.dyT.Set(lo, hi-lo, share, 1, l.outs)
	if dx == nil {
		return
	}
	a := &l.local[worker]
	a.Reset(hi-lo, l.outs)
	a.Set(0, l.outs, share, l.outs, 1)
	l.engine.Mul(dx[lo*l.ins:], l.ins, l.ins, a, l.val, l.rows)
}

// finish computes dW = dyᵀ·x over all samples at once, for a part of its columns
// in whole tiles.
func (l *linear) finish(part int, x, dy []float32) {
	tiles := max(1, l.ins/kern.Cols)
	lo, hi := tiles*part/parts*kern.Cols, tiles*(part+1)/parts*kern.Cols
	if part == parts-1 {
		hi = l.ins
	}
	if lo < hi {
		l.engine.Mul(l.dval[lo:], l.ins, hi-lo, &l.dyT, x[lo:], l.samples)
	}
	if part > 0 {
		return
	}
	clear(l.dbias)
	for ; len(dy) > 0; dy = dy[l.outs:] {
		for o, v := range dy[:l.outs] {
			l.dbias[o] += v
		}
	}
}
