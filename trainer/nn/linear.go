package nn

import "peermesh/trainer/nn/internal/kern"

// A linear layer is y = x·Wᵀ + b, W being outs×ins. Both rows of x and rows of W
// are inputs long, so forward is dot products of rows, and backward, where they
// are multiplied by columns of gradients, is products of matrices.
type linear struct {
	engine    kern.Engine
	ins, outs int
	weights

	rows   kern.Offsets       // where W's rows start
	most   kern.Offsets       // where samples' inputs start in a strip, for the largest shard so far
	inputs [parts]shardInputs // a shard's
	dyT    [parts]kern.Packed // a shard's gradient of y, outs×samples
	local  []linearScratch    // a worker's
	n      int                // samples of this step
	used   int                // shards of this step
}

// A linearScratch is a worker's own.
type linearScratch struct {
	dy    kern.Packed                            // a shard's gradient of y, samples×outs
	strip []float32                              // a few inputs of all samples
	sums  [parts * kern.Rows * kern.Cols]float32 // of each shard, for a panel of dW
}

// stripCols is how many of dW's columns are computed with one strip: whole lines of cache.
const stripCols = 2 * kern.Cols

// shardInputs are where a strip has the inputs of a shard's samples: at the offsets from
// a place on.
type shardInputs struct {
	at   int
	rows kern.Offsets
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
		l.most = kern.Every(most, stripCols)
	}
	for s := range shards {
		lo, hi := bounds(n, shards, s)
		l.inputs[s] = shardInputs{lo * stripCols, l.most.First(hi - lo)}
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

// finish computes a part of the columns of dW = dyᵀ·x. The last part has what is left of
// them beside whole tiles, for which its last tile overlaps the one before.
func (l *linear) finish(worker, part int, x, dy []float32) {
	tiles := max(1, l.ins/kern.Cols)
	from, to := tiles*part/parts*kern.Cols, tiles*(part+1)/parts*kern.Cols
	if part == parts-1 {
		to = l.ins
	}
	for col := from; col < to; col += stripCols {
		l.columns(&l.local[worker], col, min(col+stripCols, to), x)
	}
	if part == 0 {
		l.biases(dy)
	}
}

// columns sets columns [from, to) of dW, four rows at a time: the product of each shard, and
// then their sum. All that it reads often is copied together first, for rows of x and of dW
// that are a power of two apart take each other's place in the nearest cache. The rows to be
// set next are on their way meanwhile.
func (l *linear) columns(local *linearScratch, from, to int, x []float32) {
	from = max(0, min(from, to-kern.Cols))
	local.strip = grow(local.strip, l.n*stripCols)
	for i := range l.n {
		copy(local.strip[i*stripCols:], x[i*l.ins+from:i*l.ins+to])
	}
	width := min(kern.Cols, to-from)
	for o := 0; o < l.outs; o += kern.Rows {
		for col := from; col < to; col += width {
			col := min(col, to-width)
			l.engine.Prefetch(l.dval[min((o+kern.Rows)*l.ins+col, len(l.dval)):], l.ins)
			l.panel(local, o, col, width, col-from)
		}
	}
}

// panel sets four rows of dW from row o on, width columns from col on, whose inputs the
// strip has from a place on.
func (l *linear) panel(local *linearScratch, o, col, width, at int) {
	size := kern.Rows * width
	for s := range l.used {
		in := &l.inputs[s] // a copy of a shardInputs is slow to read while stores are under way
		l.engine.Panel(local.sums[s*size:], width, width, &l.dyT[s], o, local.strip[in.at+at:], in.rows)
	}
	sums := foldRows(l.engine, local.sums[:l.used*size], size)
	for r := range min(kern.Rows, l.outs-o) {
		copy(l.dval[(o+r)*l.ins+col:], sums[r*width:][:width])
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
