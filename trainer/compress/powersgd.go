package compress

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/trainer"
)

// The defaults of a PowerSGDConfig, which are PyTorch's.
const (
	DefaultRank    = 1
	DefaultStart   = 1000
	DefaultMinRate = 2
)

// PowerSGDConfig sets up a PowerSGD, on all ranks alike. The zero value is PyTorch's
// PowerSGDState.
type PowerSGDConfig struct {
	// Rank is that of the matrices that stand for gradients; zero is DefaultRank.
	Rank int
	// Start is the step at which compression begins, from 0; zero is DefaultStart. Early
	// gradients change too much for what was learned from the last one to be of use.
	// Negative: at once.
	Start int
	// MinRate is by how much at least a parameter must shrink to be compressed at all; zero
	// is DefaultMinRate.
	MinRate float64
	// Epsilon is added to a column's length before the column is divided by it; as in
	// PyTorch to that of sums of gradients which are not divided by the number of ranks.
	Epsilon float64
	// NoFeedback gives up what the matrices do not say.
	NoFeedback bool
	// NoWarmStart begins each step with a random matrix rather than with that of the step
	// before.
	NoWarmStart bool
	// Seed is that of random matrices.
	Seed uint64
	// Factors, if not nil, is the codec in which the matrices travel: one of two bytes or Int8.
	Factors ops.Codec
}

// PowerSGD is a hook that sends two narrow matrices for each wide one: PyTorch's
// powerSGD_hook (Vogels et al., "PowerSGD: Practical Low-Rank Gradient Compression for
// Distributed Optimization", NeurIPS 2019). A gradient of shape (n, …) is a matrix M of n
// rows and m columns. With Q of m × r, from the step before, the sum of all ranks' P = MQ
// is made orthonormal, and PQᵀ of the sum of all ranks' Q = MᵀP is the best that so few
// numbers say of the sum of M, or comes to be so over some steps. What it does not say is
// each rank's feedback. Given the same Q, averages are PyTorch's, in float64 to 1e-9; the Q
// to begin with is another, of numbers that any machine draws alike.
//
// A parameter of n·m elements becomes r·(n+m), where that is less by MinRate. Those of
// one dimension and those that are not worth it travel as they are, together.
type PowerSGD struct {
	Feedback

	c    PowerSGDConfig
	step []int64 // that comes next
	of   map[string]*factor
	q    []*trainer.Param
}

// A factor is what PowerSGD knows of one parameter.
type factor struct {
	index int // of the parameter among all
	n, m  int // rows and columns
	r     int
	q     tensor.Tensor // m × r, of the step before
}

// NewPowerSGD is a hook for parameters, the same as of the DDP that it is for.
func NewPowerSGD(params []*trainer.Param, c PowerSGDConfig) (*PowerSGD, error) {
	if c.Rank < 0 || !(c.MinRate >= 0) || !(c.Epsilon >= 0) {
		return nil, fmt.Errorf("compress: PowerSGD: rank %d, rate %v, epsilon %v: want nothing negative", c.Rank, c.MinRate, c.Epsilon)
	}
	c.Rank = cmp.Or(c.Rank, DefaultRank)
	c.Start = max(cmp.Or(c.Start, DefaultStart), 0)
	c.MinRate = cmp.Or(c.MinRate, DefaultMinRate)
	s := &PowerSGD{c: c, step: make([]int64, 1), of: make(map[string]*factor)}
	s.q = []*trainer.Param{{Name: "powersgd.step", Value: tensor.Of(s.step)}}
	for i, p := range params {
		shape := p.Value.Shape()
		if len(shape) < 2 || p.Value.Len() == 0 || p.Grad.Memory() == nil {
			continue
		}
		f := &factor{index: i, n: shape[0], m: p.Value.Len() / shape[0]}
		f.r = min(c.Rank, f.n, f.m)
		if float64((f.n+f.m)*f.r)*c.MinRate >= float64(f.n*f.m) {
			continue
		}
		f.q = tensor.New(p.Grad.DType(), f.m, f.r)
		f.randomize(c.Seed, 0)
		s.of[p.Name] = f
		s.q = append(s.q, &trainer.Param{Name: p.Name + ".powersgd.q", Value: f.q})
	}
	return s, nil
}

// State is the number of steps and the matrices Q, alike on all ranks.
func (s *PowerSGD) State() []*trainer.Param { return s.q }

// randomize makes Q anew, of numbers that all ranks draw alike, on any machine.
func (f *factor) randomize(seed uint64, step int64) {
	rng := rand.New(rand.NewPCG(seed^uint64(step), uint64(f.index)))
	single, double := host[float32](f.q), host[float64](f.q)
	for i := range single {
		single[i] = float32(2*rng.Float64() - 1)
	}
	for i := range double {
		double[i] = 2*rng.Float64() - 1
	}
}

// Reduce is trainer.Hook's. A group of one rank compresses nothing.
func (s *PowerSGD) Reduce(ctx context.Context, g *ops.Group, b trainer.Bucket) trainer.Pending {
	step := s.step[0]
	if b.Last {
		s.step[0]++
	}
	wide := slices.ContainsFunc(b.Params, func(p *trainer.Param) bool { return s.of[p.Name] != nil })
	if step < int64(s.c.Start) || g.Size() == 1 || !wide {
		return g.AllReduce(ctx, b.Data, tensor.Sum)
	}
	if s.c.NoWarmStart {
		for _, p := range b.Params {
			if f := s.of[p.Name]; f != nil {
				f.randomize(s.c.Seed, step)
			}
		}
	}
	var rest tensor.Tensor
	if !s.c.NoFeedback {
		var err error
		if rest, err = s.addTo(b); err != nil {
			return trainer.Failed(fmt.Errorf("compress: PowerSGD: %w", err))
		}
	}
	if b.Data.DType() == tensor.Float64 {
		return begin(ctx, g, s, b, host[float64](rest), step)
	}
	return begin(ctx, g, s, b, host[float32](rest), step)
}

// send sums the factors of a bucket over the ranks.
func (s *PowerSGD) send(ctx context.Context, g *ops.Group, x tensor.Tensor) trainer.Pending {
	if s.c.Factors == nil {
		return g.AllReduce(ctx, x, tensor.Sum)
	}
	return g.AllReduceCoded(ctx, x, tensor.Sum, ops.Coding{Codec: s.c.Factors})
}
