package ops

import (
	"context"

	"peermesh/ops/tensor"
)

// AllToAll leaves part r of rank s's in as part s of rank r's out, of Size equal ones
// along the first dimension, which Size divides. out and in have one count, the same
// on all ranks, and share no memory.
func (g *Group) AllToAll(ctx context.Context, out, in tensor.Tensor) *Work {
	const k = KindAllToAll
	if g.Rank() < 0 {
		return skipped()
	}
	if err := valid(k, "in", in); err != nil {
		return failed(err)
	}
	switch {
	case out.DType() != in.DType() || out.Len() != in.Len():
		return failed(argument(k, "out is %v, in is %v: want one element type and one count", out, in))
	case firstDim(in)%g.Size() != 0:
		return failed(argument(k, "in is %v: %d ranks do not divide its first dimension", in, g.Size()))
	case firstDim(out)%g.Size() != 0:
		return failed(argument(k, "out is %v: %d ranks do not divide its first dimension", out, g.Size()))
	}
	return g.swap(ctx, k, g.parts(out), g.parts(in))
}

// AllToAllV is AllToAll in parts of any length: of in, the next inSplits[r] along the
// first dimension are for rank r, and of out, the next outSplits[r] are from it.
// Each list has Size numbers, which add up to the first dimension; nil is equal parts.
// A rank's split for another is that one's for it, or else a *MismatchError.
func (g *Group) AllToAllV(ctx context.Context, out, in tensor.Tensor, outSplits, inSplits []int) *Work {
	const k = KindAllToAllV
	if g.Rank() < 0 {
		return skipped()
	}
	if err := valid(k, "in", in); err != nil {
		return failed(err)
	}
	if out.DType() != in.DType() {
		return failed(argument(k, "out is %v, in is %v: want one element type", out, in))
	}
	// The sums can be checked here; whether splits match those of the others shows when
	// the parts arrive.
	outs, err := g.split(k, "out", out, outSplits)
	if err != nil {
		return failed(err)
	}
	ins, err := g.split(k, "in", in, inSplits)
	if err != nil {
		return failed(err)
	}
	return g.swapLists(ctx, "outSplits", outs, "inSplits", ins)
}

// AllToAllList leaves the r-th tensor of rank s's in in the s-th of rank r's out.
// Counts may differ; that of a tensor and of the one that takes it may not, or else
// there is a *MismatchError. No two tensors share memory.
func (g *Group) AllToAllList(ctx context.Context, out, in []tensor.Tensor) *Work {
	const k = KindAllToAllV
	if g.Rank() < 0 {
		return skipped()
	}
	if err := several(k, "in", in); err != nil {
		return failed(err)
	}
	if err := g.list(k, "in", in, in[0]); err != nil {
		return failed(err)
	}
	if err := g.list(k, "out", out, in[0]); err != nil {
		return failed(err)
	}
	return g.swapLists(ctx, "out", out, "in", in)
}

func (g *Group) swapLists(ctx context.Context, outName string, out []tensor.Tensor, inName string, in []tensor.Tensor) *Work {
	if self := g.Rank(); out[self].Len() != in[self].Len() {
		return failed(argument(KindAllToAllV, "%s[%d] has %d elements, %s[%d] %d: what a rank gives itself must have one count",
			outName, self, out[self].Len(), inName, self, in[self].Len()))
	}
	return g.swap(ctx, KindAllToAllV, out, in)
}

// swap is an all-to-all of parts that have been checked. Most schedules send each
// part straight to where it belongs; one that passes parts on works within out.
func (g *Group) swap(ctx context.Context, k Kind, out, in []tensor.Tensor) *Work {
	dtype, self := in[0].DType(), g.Rank()
	t, p, err := g.begin(k, dtype, total(in), tensor.Op{}, noRoot)
	if err != nil {
		return failed(err)
	}
	// A rank alone decides where its parts lie in memory: on the wire both are alike.
	src, dst := listLayout(dtype, in, p.lanes), listLayout(dtype, out, p.lanes)
	if !p.forwards() {
		t.run.across(src, dst)
		t.body = func(do func() error) error {
			if err := tensor.Copy(out[self], in[self]); err != nil {
				return err
			}
			return do()
		}
		return g.issue(ctx, t)
	}
	t.run.over(dst)
	t.body = func(do func() error) error {
		for r := range in {
			if err := tensor.Copy(out[r], in[r]); err != nil {
				return err
			}
		}
		return do()
	}
	return g.issue(ctx, t)
}

// forwards reports whether this rank sends what it was sent. Moves of one round read
// what was there before it, so only what earlier rounds brought counts.
func (p *plan) forwards() bool {
	landed := make([]bool, p.chunks)
	for _, round := range p.rounds {
		for _, t := range round.talks {
			for _, m := range t.moves {
				for c := range m.N {
					if t.send && landed[m.Src+c] {
						return true
					}
				}
			}
		}
		for _, t := range round.talks {
			for _, m := range t.moves {
				for c := range m.N {
					landed[m.Dst+c] = landed[m.Dst+c] || !t.send
				}
			}
		}
	}
	return false
}

// split cuts x along its first dimension.
func (g *Group) split(k Kind, name string, x tensor.Tensor, splits []int) ([]tensor.Tensor, error) {
	dim := firstDim(x)
	if splits == nil {
		if dim%g.Size() != 0 {
			return nil, argument(k, "%s is %v: %d ranks do not divide its first dimension", name, x, g.Size())
		}
		return g.parts(x), nil
	}
	if len(splits) != g.Size() {
		return nil, argument(k, "%sSplits has %d numbers: want one for each of %d ranks", name, len(splits), g.Size())
	}
	row := x.Len() / max(dim, 1) // elements of one step along the first dimension
	parts, at := make([]tensor.Tensor, len(splits)), 0
	for r, n := range splits {
		if n < 0 || n > dim-at {
			return nil, argument(k, "%sSplits is %v: want numbers that add up to %d, the first dimension of %v", name, splits, dim, x)
		}
		parts[r] = x.Slice(at*row, (at+n)*row)
		at += n
	}
	if at != dim {
		return nil, argument(k, "%sSplits is %v: want numbers that add up to %d, the first dimension of %v", name, splits, dim, x)
	}
	return parts, nil
}

// firstDim is the size of the outermost dimension; a scalar has one element there.
func firstDim(x tensor.Tensor) int {
	if shape := x.Shape(); len(shape) > 0 {
		return shape[0]
	}
	return 1
}
