package trainer

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// ZeROConfig sets up a ZeRO. It is the same on every rank.
type ZeROConfig struct {
	// Stage is 1, where a DDP averages gradients, or 2, where each rank gets the
	// averages of its share only. Zero: 2.
	Stage int
	// Bucket is the size in bytes at which a bucket is full; zero is DefaultBucket.
	Bucket int
	// Synced is as in DDPConfig.
	Synced bool
	// Hook is as in DDPConfig, at stage 2; at stage 1 it is the DDP's. What it sends is a
	// whole bucket for all ranks, of which each takes its part.
	Hook Hook
}

// A ZeRO is an optimiser whose memory is shared out: each rank updates its share
// of every bucket of parameters, with an optimiser's memory for that alone, and
// then all give each other what they have updated (Rajbhandari et al., "ZeRO:
// Memory optimizations toward training trillion parameter models", SC 2020).
// With n ranks each has 1/n of the moments of an Adam. From the same averages come
// the same parameters as with the whole optimiser on every rank, to the bit, since
// its arithmetic is by element; LAMB, whose is not, is refused.
//
// At stage 2 it stands in the place of a DDP as well: Ready and Wait are the same.
// A reduce-scatter while backward runs and an all-gather after the update send as
// much as one all-reduce; at stage 1 the all-gather comes on top.
//
// All methods belong to the goroutine that computes.
type ZeRO struct {
	Optimizer // of this rank's share; its Step is hidden by ZeRO's
	ctx       context.Context
	g         *ops.Group
	params    []*Param
	stage     int
	hook      Hook

	buckets  []*zeroBucket
	at       []place
	pieces   []*Param // this rank's share of each parameter; it may have no elements
	launched int
	seen     []bool
	weight   float64
	err      error
}

// A zeroBucket is parameters that travel together, in as many equal parts as there
// are ranks. The last is padded.
type zeroBucket struct {
	bucket
	part    int           // elements of a rank's
	flat    tensor.Tensor // gradients on their way out, values on their way in
	mine    tensor.Tensor // the averages of this rank's part; stage 2 only
	missing int
	work    Pending
}

// NewZeRO shares out parameters, all of which have gradients, and makes of this
// rank's share an optimiser with build. It verifies and broadcasts as NewDDP does,
// and is called as that is.
func NewZeRO(ctx context.Context, g *ops.Group, params []*Param, c ZeROConfig, build func(share []*Param) (Optimizer, error)) (*ZeRO, error) {
	if c.Stage < 0 || c.Stage > 2 || c.Bucket < 0 {
		return nil, fmt.Errorf("trainer: ZeRO: stage %d with buckets of %d bytes: want stage 1 or 2", c.Stage, c.Bucket)
	}
	if c.Stage == 1 && c.Hook != nil {
		return nil, errors.New("trainer: ZeRO: a hook at stage 1, where a DDP averages: give it to that")
	}
	if c.Stage == 0 {
		c.Stage = 2
	}
	if c.Bucket == 0 {
		c.Bucket = DefaultBucket
	}
	if err := verify(ctx, g, params, shareable(params)); err != nil {
		return nil, err
	}
	z := &ZeRO{ctx: ctx, g: g, params: params, stage: c.Stage, hook: c.Hook, at: make([]place, len(params)), seen: make([]bool, len(params))}
	if !c.Synced {
		if err := broadcast(ctx, g, params, 0); err != nil {
			return nil, err
		}
	}
	z.share(c.Bucket)
	var err error
	if z.Optimizer, err = build(z.pieces); err != nil {
		return nil, err
	}
	if _, ok := z.Optimizer.(*LAMB); ok {
		return nil, errors.New("trainer: ZeRO: LAMB takes norms of whole parameters, which no rank has")
	}
	z.reset()
	return z, nil
}

// shareable is averageable, and that all have gradients and names of their own.
func shareable(params []*Param) error {
	if err := averageable(params); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for _, p := range params {
		if !hasGradient(p) || seen[p.Name] {
			return fmt.Errorf("trainer: ZeRO: %q has no gradient, or its name twice", p.Name)
		}
		seen[p.Name] = true
	}
	return nil
}

// share cuts the parameters into buckets and parts.
func (z *ZeRO) share(limit int) {
	n := z.g.Size()
	z.pieces = make([]*Param, len(z.params))
	for k, b := range assign(z.params, lastToFirst(z.params), limit, limit) {
		zb := &zeroBucket{bucket: b, part: (b.len + n - 1) / n}
		zb.flat = tensor.New(b.dtype, zb.part*n)
		if z.stage == 2 {
			zb.mine = tensor.New(b.dtype, zb.part)
		}
		z.buckets = append(z.buckets, zb)
		at := 0
		for _, i := range b.params {
			z.at[i] = place{k, at, at + z.params[i].Value.Len()}
			at = z.at[i].hi
			lo, hi := z.piece(i, z.g.Rank())
			p := &Param{Name: z.params[i].Name, Value: z.params[i].Value.Slice(lo, hi), Grad: z.params[i].Grad.Slice(lo, hi)}
			if z.stage == 2 {
				p.Grad = zb.mine.Slice(0, 0)
				if first := z.at[i].lo + lo - z.g.Rank()*zb.part; hi > lo {
					p.Grad = zb.mine.Slice(first, first+hi-lo)
				}
			}
			z.pieces[i] = p
		}
	}
}

// piece is which elements of parameter i are a rank's, [lo, hi).
func (z *ZeRO) piece(i, rank int) (lo, hi int) {
	at, part := z.at[i], z.buckets[z.at[i].bucket].part
	lo = min(max(rank*part, at.lo), at.hi)
	hi = max(min((rank+1)*part, at.hi), lo)
	return lo - at.lo, hi - at.lo
}

// Weigh is as in a DDP, at stage 2.
func (z *ZeRO) Weigh(weight float64) { z.weight = weight }

// Ready says that the gradient of parameter i is final, at stage 2. What goes wrong
// here comes out of Wait.
func (z *ZeRO) Ready(i int) {
	switch {
	case z.err != nil:
		return
	case i < 0 || i >= len(z.params) || z.stage != 2:
		z.err = fmt.Errorf("trainer: ZeRO: gradient %d of %d is ready, at stage %d", i, len(z.params), z.stage)
		return
	case z.seen[i]:
		z.err = fmt.Errorf("trainer: gradient of %q is ready twice in one step", z.params[i].Name)
		return
	}
	z.seen[i] = true
	at := z.at[i]
	b := z.buckets[at.bucket]
	copyElements(b.flat.Slice(at.lo, at.hi), z.params[i].Grad)
	b.missing--
	for z.err == nil && z.launched < len(z.buckets) && z.buckets[z.launched].missing == 0 {
		z.reduce(z.launched)
		z.launched++
	}
}

// Idle is as in a DDP, at stage 2.
func (z *ZeRO) Idle() {
	for i := len(z.params) - 1; i >= 0; i-- {
		zero(z.params[i].Grad)
		z.Ready(i)
	}
}

// Wait is as in a DDP, at stage 2; but afterwards each rank has the averages of its
// share only, and Grad is what backward left in it.
func (z *ZeRO) Wait() error {
	defer z.reset()
	err := z.err
	if err == nil && z.launched < len(z.buckets) {
		for i, seen := range z.seen {
			if !seen {
				err = fmt.Errorf("trainer: no gradient was ready in this step for %s: every parameter must take part in the loss", z.params[i].Name)
				break
			}
		}
	}
	for _, b := range z.buckets[:z.launched] {
		err = cmp.Or(err, averaged(b.work)) // as in a DDP
	}
	return err
}

func (z *ZeRO) reset() {
	for _, b := range z.buckets {
		b.missing = len(b.params)
	}
	clear(z.seen)
	z.launched, z.weight, z.err = 0, 1/float64(z.g.Size()), nil
}

// Step updates this rank's share of the parameters and gets the others'. Unlike
// other optimisers' it is a collective, and may fail after it has begun: then give
// its error to the world's End, and go on from a checkpoint.
func (z *ZeRO) Step() error {
	if z.stage == 1 {
		for i, p := range z.pieces { // a DDP may have moved the gradients
			lo, hi := z.piece(i, z.g.Rank())
			p.Grad = z.params[i].Grad.Slice(lo, hi)
		}
	}
	if err := z.Optimizer.Step(); err != nil {
		return err
	}
	for _, b := range z.buckets {
		for _, i := range b.params {
			at := z.at[i]
			lo, hi := z.piece(i, z.g.Rank())
			copyElements(b.flat.Slice(at.lo+lo, at.lo+hi), z.pieces[i].Value)
		}
		b.work = z.g.AllGather(z.ctx, b.flat, b.own(z.g.Rank()))
	}
	var err error
	for _, b := range z.buckets { // the next is on its way while this one is copied
		if e := b.work.Wait(); e != nil {
			err = errors.Join(err, fmt.Errorf("trainer: ZeRO: gathering parameters: %w", e))
			continue
		}
		for _, i := range b.params {
			copyElements(z.params[i].Value, b.flat.Slice(z.at[i].lo, z.at[i].hi))
		}
	}
	return err
}
