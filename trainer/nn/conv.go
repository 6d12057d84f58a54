package nn

import "peermesh/trainer/nn/internal/kern"

// A conv layer is a convolution of stride 1 without padding, followed by a 2×2
// max pool if asked. It is direct: the rows of its right factor are shifted
// views of the image itself (offsets), so no image is unrolled into a matrix.
//
// A plane is one channel of a sample. Backward, the gradient of the
// convolution's output lies in planes of pitch floats, in rows as long as the
// input's and behind k-1 rows and columns of zeros: then both the input's
// gradient and the kernel's are again sums over shifted views.
type conv struct {
	engine kern.Engine
	inC, c int // channels
	h, w   int // of an input plane
	k      int // side of the kernel
	pool   bool
	weights

	taps        kern.Offsets // forward: tap (channel, ky, kx) in a sample's input
	back        kern.Offsets // backward: tap (channel out, ky, kx) in the padded gradient
	fwd, bwd    kern.Packed  // the weights, c×(inC·k·k) and inC×(c·k·k)
	pitch, base int          // of a padded plane: its length, where the gradient starts

	which  []uint8       // the place of each pooled square's largest
	local  []convScratch // a worker's
	shares []convShare   // a shard's part of the gradients
	used   []convShare   // those of this step
}

// A convScratch holds one sample at a time: it stays in the cache, and a batch's
// planes before pooling, 9 MB in the ConvNet, are never written to memory.
type convScratch struct {
	wide []float32 // output with the input's row length
	z    []float32 // output before pooling
	pad  []float32 // its gradient, in padded planes
}

// A convShare is a shard's part of the gradients: sums for four channels out, a
// Dot's rows of A, by three taps, its rows of B.
type convShare struct {
	sums []kern.Sums
	bias []float32
}

func newConv(e kern.Engine, workers int, in shape, c, k int, pool bool) *conv {
	l := &conv{
		engine: e, inC: in.c, c: c, h: in.h, w: in.w, k: k, pool: pool,
		weights: weights{shape: []int{c, in.c, k, k}},
		local:   make([]convScratch, workers), shares: make([]convShare, parts),
	}
	l.base = (k - 1) * (in.w + 1)
	l.pitch = in.h*in.w + l.base
	l.taps = kern.NewOffsets(in.c*k*k, func(i int) int {
		return i/(k*k)*in.h*in.w + i/k%k*in.w + i%k
	})
	l.back = kern.NewOffsets(c*k*k, func(i int) int {
		return i/(k*k)*l.pitch + l.base - (i/k%k*in.w + i%k)
	})
	oh, ow := l.convolved()
	for i := range l.local {
		l.local[i] = convScratch{
			wide: make([]float32, c*l.span()),
			z:    make([]float32, c*oh*ow),
			pad:  make([]float32, c*l.pitch),
		}
	}
	for i := range l.shares {
		quads, triples := (c+3)/4, (in.c*k*k+2)/3
		l.shares[i] = convShare{make([]kern.Sums, quads*triples), make([]float32, c)}
	}
	return l
}

// convolved is the size of an output plane before pooling.
func (l *conv) convolved() (h, w int) { return l.h - l.k + 1, l.w - l.k + 1 }

// span is the floats from the first to the last of an output plane whose rows
// are as far apart as the input's.
func (l *conv) span() int {
	oh, ow := l.convolved()
	return (oh-1)*l.w + ow
}

// out is the shape of a sample's output.
func (l *conv) out() shape {
	h, w := l.convolved()
	if l.pool {
		h, w = h/2, w/2
	}
	return shape{l.c, h, w}
}

func (l *conv) size() (ins, outs int) { return l.inC * l.h * l.w, l.out().len() }

// prepare packs the weights once for all samples; backward, channels in and out
// have changed places.
func (l *conv) prepare(n, shards int, train bool) {
	kk := l.k * l.k
	l.fwd.Reset(l.c, l.inC*kk)
	l.fwd.Set(0, l.inC*kk, l.val, l.inC*kk, 1)
	l.fwd.Start(l.bias)
	if _, outs := l.size(); l.pool {
		l.which = grow(l.which, n*outs)
	}
	if !train {
		return
	}
	l.bwd.Reset(l.inC, l.c*kk)
	for c := range l.c {
		l.bwd.Set(c*kk, kk, l.val[c*l.inC*kk:], kk, 1)
	}
	l.used = l.shares[:shards]
	for _, s := range l.used {
		clear(s.sums)
		clear(s.bias)
	}
}

func (l *conv) forward(worker int, x, y []float32, lo, hi int) {
	ins, outs := l.size()
	oh, ow := l.convolved()
	for i := lo; i < hi; i++ {
		x, y := x[i*ins:][:ins], y[i*outs:][:outs]
		if !l.pool {
			l.convolve(worker, x, y)
			continue
		}
		z := l.local[worker].z
		l.convolve(worker, x, z)
		maxPool(y, l.which[i*outs:][:outs], z, oh, ow)
	}
}

// convolve is one sample's convolution. Where a row fills a tile, tiles go row
// by row, straight to z. Shorter rows are computed along with the columns that
// wrap around from one to the next, and picked out.
func (l *conv) convolve(worker int, x, z []float32) {
	oh, ow := l.convolved()
	if ow >= kern.Cols {
		for r := range oh {
			l.engine.Mul(z[r*ow:], oh*ow, ow, &l.fwd, x[r*l.w:], l.taps)
		}
		return
	}
	wide, span := l.local[worker].wide, l.span()
	l.engine.Mul(wide, span, span, &l.fwd, x, l.taps)
	for c := range l.c {
		for r := range oh {
			copy(z[(c*oh+r)*ow:][:ow], wide[c*span+r*l.w:])
		}
	}
}

// backward takes a sample at a time through all that its gradient is needed for.
// The bias's part is summed before spread, from a quarter of the elements where
// there is a pool.
func (l *conv) backward(worker, shard int, x, dy, dx []float32, lo, hi int) {
	ins, outs := l.size()
	pad, share := l.local[worker].pad, l.used[shard]
	for i := lo; i < hi; i++ {
		dy := dy[i*outs:][:outs]
		for c, plane := 0, outs/l.c; c < l.c; c++ {
			share.bias[c] += kern.Sum(dy[c*plane:][:plane])
		}
		l.spread(pad, dy, i)
		l.correlate(share.sums, pad, x[i*ins:][:ins])
		if dx != nil {
			l.engine.Mul(dx[i*ins:], l.h*l.w, l.h*l.w, &l.bwd, pad, l.back)
		}
	}
}

// spread lays sample i's gradient dy into the padded planes. What it does not
// write there has been zero since they were made.
func (l *conv) spread(pad, dy []float32, i int) {
	o := l.out()
	for c := range l.c {
		at := pad[c*l.pitch+l.base:]
		dy := dy[c*o.h*o.w:][:o.h*o.w]
		if l.pool {
			unpool(at, l.w, dy, l.which[(i*l.c+c)*o.h*o.w:], o.w)
			continue
		}
		for r := range o.h {
			copy(at[r*l.w:], dy[r*o.w:][:o.w])
		}
	}
}

// correlate adds a sample's part of the weights' gradient, the product of each
// plane of the padded gradient with each view of x. In the columns between two
// rows of the gradient, the view has pixels of no concern and the gradient zeros.
// A group of channels or taps that is not full repeats its last one.
func (l *conv) correlate(sums []kern.Sums, pad, x []float32) {
	last := l.taps.Len() - 1
	for c := 0; c < l.c; c += 4 {
		var planes [4]int
		for r := range planes {
			planes[r] = min(c+r, l.c-1)*l.pitch + l.base
		}
		for t := 0; t <= last; t += 3 {
			views := [3]int{l.taps.At(t), l.taps.At(min(t+1, last)), l.taps.At(min(t+2, last))}
			l.engine.Dot(&sums[0], l.span(), pad, &planes, x, &views)
			sums = sums[1:]
		}
	}
}

// finish adds the shards up for a part of the channels.
func (l *conv) finish(_, part int, _, _ []float32) {
	var v [parts]float32
	all := v[:len(l.used)]
	taps := l.taps.Len()
	triples := (taps + 2) / 3
	for c := l.c * part / parts; c < l.c*(part+1)/parts; c++ {
		for s, share := range l.used {
			all[s] = share.bias[c]
		}
		l.dbias[c] = fold(all)
		for t := range taps {
			for s, share := range l.used {
				all[s] = share.sums[c/4*triples+t/3].Sum(c%4, t%3)
			}
			l.dval[c*taps+t] = fold(all)
		}
	}
}
