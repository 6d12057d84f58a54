package nn

import "peermesh/trainer/nn/internal/kern"

// A linear layer is y = x·Wᵀ + b, W being outs×ins. Both rows of x and rows of W
// are inputs long, so forward is dot products of rows, and backward, where they
// are multiplied by columns of gradients, is products of matrices.
type linear struct {
	engine    kern.Engine
	ins, outs int
	weights

	rows    kern.Offsets       // where W's rows start
	most    kern.Offsets       // where samples' inputs start, for the largest shard so far
	dyT     [parts]kern.Packed // a shard's gradient of y, outs×samples
	local   []linearScratch    // a worker's
	n, used int                // samples and shards of this step
}

// A linearScratch is a worker's own.
type linearScratch struct {
	dy   kern.Packed // a shard's gradient of y, samples×outs
	sums []float32   // of each shard, for a tile of columns
}

func newLinear(e kern.Engine, workers, ins, outs int) *linear {
	return &linear{
		engine: e, ins: ins, outs: outs,
		weights: weights{shape: []int{outs, ins}},
		rows:    kern.Every(outs, ins),
		local:   make([]linearScratch, workers),
	}
}

func (l *linear) size() (ins, outs int) { return l.ins, l.outs }

func (l *linear) prepare(n, shards int, train bool) {
	if !train {
		return
	}
	l.n, l.used = n, shards
	if _, most := bounds(n, shards, 0); l.most.Len() < most {
		l.most = kern.Every(most, l.ins)
	}
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
// too large for every shard to have one.
func (l *linear) backward(worker, shard int, x, dy, dx []float32, lo, hi int) {
	share := dy[lo*l.outs : hi*l.outs]
	l.dyT[shard].Reset(l.outs, hi-lo)
	l.dyT[shard].Set(0, hi-lo, share, 1, l.outs)
	if dx == nil {
		return
	}
	a := &l.local[worker].dy
	a.Reset(hi-lo, l.outs)
	a.Set(0, l.outs, share, l.outs, 1)
	l.engine.Mul(dx[lo*l.ins:], l.ins, l.ins, a, l.val, l.rows)
}

// finish computes a part of the columns of dW = dyᵀ·x, a tile at a time: the
// product of each shard, and then their sum.
func (l *linear) finish(worker, part int, x, dy []float32) {
	tiles := max(1, l.ins/kern.Cols)
	local := &l.local[worker]
	for t := tiles * part / parts; t < tiles*(part+1)/parts; t++ {
		l.tile(local, t*kern.Cols, x)
	}
	if part == parts-1 && l.ins > tiles*kern.Cols { // it has the last whole tile, which this one overlaps
		l.tile(local, l.ins-kern.Cols, x)
	}
	if part == 0 {
		l.biases(dy)
	}
}

// tile sets the columns of dW from col on, kern.Cols of them or all.
func (l *linear) tile(local *linearScratch, col int, x []float32) {
	width := min(kern.Cols, l.ins)
	local.sums = grow(local.sums, l.used*l.outs*width)
	for s := range l.used {
		lo, hi := bounds(l.n, l.used, s)
		l.engine.Mul(local.sums[s*l.outs*width:], width, width, &l.dyT[s], x[lo*l.ins+col:], l.most.First(hi-lo))
	}
	sums := foldRows(local.sums, l.outs*width)
	for o := range l.outs {
		copy(l.dval[o*l.ins+col:], sums[o*width:][:width])
	}
}

func (l *linear) biases(dy []float32) {
	var v [parts]float32
	for o := range l.outs {
		for s := range l.used {
			v[s] = 0
			lo, hi := bounds(l.n, l.used, s)
			for i := lo; i < hi; i++ {
				v[s] += dy[i*l.outs+o]
			}
		}
		l.dbias[o] = fold(v[:l.used])
	}
}
