package layers

import (
	"fmt"
	"math"

	"peermesh/ops/tensor"
)

// A BatchNorm2d normalises each channel to mean 0 and variance 1 over all samples
// and pixels of the batch, and then scales and shifts it by parameters: Ioffe and
// Szegedy, 2015; torch.nn.BatchNorm2d. Evaluation uses running statistics, which
// are buffers with PyTorch's names and arithmetic: the variance that they take in is
// unbiased.
//
// Statistics are sums, sums of squares and counts in float64, which need one pass
// and, once Net.Synchronize has been called, one all_reduce over the ranks. Backward
// needs two sums for each channel, and again one all_reduce: both are waited for
// where they are, as what follows depends on them.
type BatchNorm2d struct {
	Eps      float64 // added to the variance; zero: 1e-5
	Momentum float64 // of the running statistics; zero: 0.1

	channels, plane int
	raw             bool
	w, bias         *Weight
	mean, variance  []float32 // running
	count           []int64   // batches that they have seen

	sums          []float64 // of each channel: two, and at the end the number of floats
	world         tensor.Tensor
	scale, shift  []float32 // of this pass, by channel
	center, inv   []float32 // what x was normalised with
	x, y, dy      []float32
	gather, apply func(worker, part int)
	slope, back   func(worker, part int)
}

// Init is Layer's.
func (l *BatchNorm2d) Init(b *Builder, in Shape) (Shape, error) {
	if len(in) != 3 || !(l.Eps >= 0) || !(l.Momentum >= 0 && l.Momentum <= 1) {
		return nil, fmt.Errorf("layers: %sBatchNorm2d of %v, eps %v, momentum %v: want channels, height, width", b.prefix, in, l.Eps, l.Momentum)
	}
	if l.Eps == 0 {
		l.Eps = 1e-5
	}
	if l.Momentum == 0 {
		l.Momentum = 0.1
	}
	c := in[0]
	l.channels, l.plane, l.raw = c, in[1]*in[2], b.raw
	l.w, l.bias = b.Weight("weight", Constant(1), c), b.Weight("bias", Constant(0), c)
	l.mean, l.variance, l.count = make([]float32, c), make([]float32, c), make([]int64, 1)
	Constant(1)(nil, l.variance)
	b.Buffer("running_mean", tensor.Of(l.mean))
	b.Buffer("running_var", tensor.Of(l.variance))
	scalar, err := tensor.Of(l.count).Reshape()
	if err != nil {
		return nil, fmt.Errorf("layers: %w", err)
	}
	b.Buffer("num_batches_tracked", scalar)
	l.sums = make([]float64, 2*c+1)
	l.world = tensor.Of(l.sums)
	l.scale, l.shift = make([]float32, c), make([]float32, c)
	l.center, l.inv = make([]float32, c), make([]float32, c)
	l.gather, l.apply, l.slope, l.back = l.gatherPart, l.applyPart, l.slopePart, l.backPart
	return in, nil
}

// Forward is Layer's.
func (l *BatchNorm2d) Forward(p *Pass, x []float32) ([]float32, error) {
	l.x, l.y = x, grow(l.y, len(x))
	if p.Train {
		l.sums[2*l.channels] = float64(p.N * l.plane)
		p.Each(cut(l.channels), l.gather)
		if err := l.all(p); err != nil {
			return nil, err
		}
		if err := l.settle(); err != nil {
			return nil, err
		}
	} else {
		for c := range l.channels {
			l.normal(c, float64(l.mean[c]), float64(l.variance[c]))
		}
	}
	p.Each(cut(len(x)/l.plane), l.apply)
	return l.y, nil
}

// all adds up the sums of all ranks.
func (l *BatchNorm2d) all(p *Pass) error {
	g := p.Group()
	if g == nil || g.Size() == 1 {
		return nil
	}
	if err := g.AllReduce(p.ctx, l.world, tensor.Sum).Wait(); err != nil {
		return fmt.Errorf("layers: statistics of %s: %w", l.w.Param.Name, err)
	}
	return nil
}

func (l *BatchNorm2d) gatherPart(_, part int) {
	lo, hi := bounds(l.channels, part)
	for c := lo; c < hi; c++ {
		var s, ss float64
		for at := c * l.plane; at < len(l.x); at += l.channels * l.plane {
			u, v := moments(l.x[at:][:l.plane])
			s += u
			ss += v
		}
		l.sums[2*c], l.sums[2*c+1] = s, ss
	}
}

// moments are the sum and the sum of squares.
func moments(x []float32) (s, ss float64) {
	var s1, ss1 float64
	for ; len(x) >= 2; x = x[2:] {
		u, v := float64(x[0]), float64(x[1])
		s += u
		s1 += v
		ss += u * u
		ss1 += v * v
	}
	for _, v := range x {
		s += float64(v)
		ss += float64(v) * float64(v)
	}
	return s + s1, ss + ss1
}

// settle makes of the sums what the batch is normalised with, and moves the running
// statistics.
func (l *BatchNorm2d) settle() error {
	n := l.sums[2*l.channels]
	if n < 2 {
		return fmt.Errorf("layers: %s: a variance needs more than one value of a channel", l.w.Param.Name)
	}
	l.count[0]++
	for c := range l.channels {
		mean := l.sums[2*c] / n
		variance := max(0, l.sums[2*c+1]/n-mean*mean)
		l.normal(c, mean, variance)
		l.mean[c] += float32(l.Momentum * (mean - float64(l.mean[c])))
		l.variance[c] += float32(l.Momentum * (variance*n/(n-1) - float64(l.variance[c])))
	}
	return nil
}

func (l *BatchNorm2d) normal(c int, mean, variance float64) {
	inv := 1 / math.Sqrt(variance+l.Eps)
	l.center[c], l.inv[c] = float32(mean), float32(inv)
	w := float64(l.w.Value[c]) * inv
	l.scale[c], l.shift[c] = float32(w), float32(float64(l.bias.Value[c])-mean*w)
}

func (l *BatchNorm2d) applyPart(_, part int) {
	lo, hi := bounds(len(l.x)/l.plane, part)
	for i := lo; i < hi; i++ {
		scale, shift := l.scale[i%l.channels], l.shift[i%l.channels]
		y := l.y[i*l.plane:][:l.plane]
		for j, v := range l.x[i*l.plane:][:l.plane] {
			y[j] = v*scale + shift
		}
	}
}

// Backward is Layer's. The parameters' gradients are of this rank's samples, as any
// other layer's; that of the input takes all ranks' into account.
func (l *BatchNorm2d) Backward(p *Pass, dy []float32) ([]float32, error) {
	l.dy = dy
	p.Each(cut(l.channels), l.slope)
	for c := range l.channels {
		l.bias.Grad[c], l.w.Grad[c] = float32(l.sums[2*c]), float32(l.sums[2*c+1])
	}
	l.sums[2*l.channels] = float64(p.N * l.plane)
	if err := l.slopes(p); err != nil {
		return nil, err
	}
	p.Ready(l.bias)
	p.Ready(l.w)
	if l.raw {
		return nil, nil
	}
	n := l.sums[2*l.channels]
	for c := range l.channels {
		// dx = w·inv·(dy - mean(dy) - x̂·mean(dy·x̂)), with x̂ = (x-center)·inv
		slope := l.sums[2*c+1] / n * float64(l.inv[c])
		l.scale[c] = float32(slope)
		l.shift[c] = float32(l.sums[2*c]/n - slope*float64(l.center[c]))
	}
	p.Each(cut(len(dy)/l.plane), l.back)
	return dy, nil
}

// slopes adds up the backward sums of all ranks. Each rank has them of its own loss, which
// counts for the rank's weight, and wants the total in units of that.
func (l *BatchNorm2d) slopes(p *Pass) error {
	sums := l.sums[:2*l.channels]
	if p.weight != 1 {
		for i := range sums {
			sums[i] *= p.weight
		}
	}
	if err := l.all(p); err != nil {
		return err
	}
	if p.weight != 1 {
		for i := range sums {
			sums[i] /= p.weight
		}
	}
	return nil
}

// slopePart takes the sums of dy and of dy·x̂.
func (l *BatchNorm2d) slopePart(_, part int) {
	lo, hi := bounds(l.channels, part)
	for c := lo; c < hi; c++ {
		var s, sx float64
		center, inv := l.center[c], float64(l.inv[c])
		for at := c * l.plane; at < len(l.x); at += l.channels * l.plane {
			x := l.x[at:][:l.plane]
			for j, v := range l.dy[at:][:l.plane] {
				s += float64(v)
				sx += float64(v) * float64(x[j]-center)
			}
		}
		l.sums[2*c], l.sums[2*c+1] = s, sx*inv
	}
}

func (l *BatchNorm2d) backPart(_, part int) {
	lo, hi := bounds(len(l.dy)/l.plane, part)
	for i := lo; i < hi; i++ {
		c := i % l.channels
		slope, shift, w := l.scale[c], l.shift[c], l.w.Value[c]*l.inv[c]
		dy := l.dy[i*l.plane:][:l.plane]
		for j, x := range l.x[i*l.plane:][:l.plane] {
			dy[j] = w * (dy[j] - shift - slope*x)
		}
	}
}
