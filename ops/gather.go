package ops

import (
	"context"

	"peermesh/ops/tensor"
)

// Gather collects every rank's in, by rank, in out of rank dst. There out is as in
// AllGather; elsewhere it is the zero Tensor. in has the same count on all ranks.
//
// An out that only this rank gives, and gives wrong, is found out when the others
// are already at work. So the call fails on all ranks, which are told the reason by
// an *AbortedError, and the group refuses further work.
func (g *Group) Gather(ctx context.Context, out, in tensor.Tensor, dst int) *Work {
	root, err := g.rooted(KindGather, in, dst)
	if err != nil || g.Rank() < 0 {
		return failed(err)
	}
	var parts []tensor.Tensor
	err = g.onlyAt(KindGather, "out", out.DType().Valid(), root)
	if err == nil && g.Rank() == root {
		if err = g.spread(KindGather, "out", out, "in", in); err == nil {
			parts = g.parts(out)
		}
	}
	return g.collect(ctx, KindGather, parts, in, root, err)
}

// GatherList collects every rank's in, by rank, in the tensors of rank dst: the i-th
// rank's in the i-th, which has its count. Elsewhere the list is nil. Counts may
// differ between ranks: it is torch.distributed's gather and MPI_Gatherv. A list that
// is wrong is treated as in Gather, a count that is not that of what comes is a
// *MismatchError.
func (g *Group) GatherList(ctx context.Context, out []tensor.Tensor, in tensor.Tensor, dst int) *Work {
	root, err := g.rooted(KindGatherList, in, dst)
	if err != nil || g.Rank() < 0 {
		return failed(err)
	}
	err = g.onlyAt(KindGatherList, "out", out != nil, root)
	if err == nil && g.Rank() == root {
		err = g.list(KindGatherList, "out", out, in)
	}
	if err == nil && g.Rank() == root && out[root].Len() != in.Len() {
		err = argument(KindGatherList, "out[%d] is %v, in is %v: what a rank gives itself must have one count", root, out[root], in)
	}
	return g.collect(ctx, KindGatherList, out, in, root, err)
}

// collect gathers in to the parts of the root. bad, when not nil, is what only this
// rank finds wrong.
func (g *Group) collect(ctx context.Context, k Kind, parts []tensor.Tensor, in tensor.Tensor, root int, bad error) *Work {
	t, p, err := g.begin(k, in.DType(), g.counted(k, in), tensor.Op{}, root)
	if err != nil {
		return failed(err)
	}
	t.body = func(do func() error) error {
		if bad != nil {
			return &badCall{bad} // in turn, so that calls before it are not cut short
		}
		if g.Rank() != root {
			parts = g.relay(p, in, func(int) int { return in.Len() })
		} else if err := tensor.Copy(parts[root], in); err != nil {
			return err
		}
		t.run.over(listLayout(in.DType(), parts, p.lanes))
		return do()
	}
	return g.issue(ctx, t)
}

// Scatter leaves part r of rank src's in, of Size equal ones, in rank r's out. At
// src in is as in ReduceScatter; elsewhere it is the zero Tensor. out has the same
// count on all ranks. What is wrong about in is treated as in Gather.
func (g *Group) Scatter(ctx context.Context, out, in tensor.Tensor, src int) *Work {
	root, err := g.rooted(KindScatter, out, src)
	if err != nil || g.Rank() < 0 {
		return failed(err)
	}
	var parts []tensor.Tensor
	err = g.onlyAt(KindScatter, "in", in.DType().Valid(), root)
	if err == nil && g.Rank() == root {
		if err = g.spread(KindScatter, "in", in, "out", out); err == nil {
			parts = g.parts(in)
		}
	}
	return g.deal(ctx, KindScatter, out, parts, root, err)
}

// ScatterList leaves the r-th tensor of rank src's in in rank r's out, which has its
// count. Elsewhere the list is nil. Counts may differ between ranks: it is
// torch.distributed's scatter and MPI_Scatterv. A list that is wrong is treated as in
// Gather, a count that is not that of what comes is a *MismatchError.
func (g *Group) ScatterList(ctx context.Context, out tensor.Tensor, in []tensor.Tensor, src int) *Work {
	root, err := g.rooted(KindScatterList, out, src)
	if err != nil || g.Rank() < 0 {
		return failed(err)
	}
	err = g.onlyAt(KindScatterList, "in", in != nil, root)
	if err == nil && g.Rank() == root {
		err = g.list(KindScatterList, "in", in, out)
	}
	if err == nil && g.Rank() == root && in[root].Len() != out.Len() {
		err = argument(KindScatterList, "in[%d] is %v, out is %v: what a rank gives itself must have one count", root, in[root], out)
	}
	return g.deal(ctx, KindScatterList, out, in, root, err)
}

// deal scatters the parts of the root to every out.
func (g *Group) deal(ctx context.Context, k Kind, out tensor.Tensor, parts []tensor.Tensor, root int, bad error) *Work {
	t, p, err := g.begin(k, out.DType(), g.counted(k, out), tensor.Op{}, root)
	if err != nil {
		return failed(err)
	}
	t.body = func(do func() error) error {
		if bad != nil {
			return &badCall{bad}
		}
		if g.Rank() != root {
			parts = g.relay(p, out, func(int) int { return out.Len() })
		} else if err := tensor.Copy(out, parts[root]); err != nil {
			return err
		}
		t.run.over(listLayout(out.DType(), parts, p.lanes))
		return do()
	}
	return g.issue(ctx, t)
}

// counted is the Count of a call in which x is this rank's part.
func (g *Group) counted(k Kind, x tensor.Tensor) int {
	if k.ownCounts() {
		return x.Len()
	}
	return x.Len() * g.Size()
}

// parts are a tensor's Size equal parts.
func (g *Group) parts(x tensor.Tensor) []tensor.Tensor {
	all := make([]tensor.Tensor, g.Size())
	for r := range all {
		lo, hi := share(x.Len(), r, g.Size())
		all[r] = x.Slice(lo, hi)
	}
	return all
}

// relay is the list of a rank that is not the root of a gather or scatter: its own
// part, room for those that pass through it, and nothing of the rest.
func (g *Group) relay(p *plan, own tensor.Tensor, count func(c int) int) []tensor.Tensor {
	list := make([]tensor.Tensor, p.chunks)
	for c := range list {
		list[c] = own.Slice(0, 0)
	}
	for _, round := range p.rounds {
		for _, t := range round.talks {
			for _, m := range t.moves {
				for c := m.Dst; c < m.Dst+m.N; c++ {
					if list[c].Len() == 0 && c != g.Rank() {
						list[c] = tensor.New(own.DType(), count(c))
					}
				}
			}
		}
	}
	list[g.Rank()] = own
	return list
}

// onlyAt refuses an argument that is given elsewhere than at the root, or is missing
// there.
func (g *Group) onlyAt(k Kind, name string, given bool, root int) error {
	switch {
	case given && g.Rank() != root:
		return argument(k, "%s is given by rank %d: it is for the root, rank %d", name, g.ranks.world(g.Rank()), g.ranks.world(root))
	case !given && g.Rank() == root:
		return argument(k, "%s is missing at the root, rank %d", name, g.ranks.world(root))
	}
	return nil
}

// list refuses a list that has not one tensor a rank, or one of another element type
// than x.
func (g *Group) list(k Kind, name string, list []tensor.Tensor, x tensor.Tensor) error {
	if len(list) != g.Size() {
		return argument(k, "%s has %d tensors: want one for each of %d ranks", name, len(list), g.Size())
	}
	return alike(k, name, list, x.DType())
}

// alike refuses tensors that are not all of one element type.
func alike(k Kind, name string, list []tensor.Tensor, t tensor.DType) error {
	for i, x := range list {
		if x.DType() != t {
			if err := valid(k, name, x); err != nil {
				return argument(k, "%s[%d] is the zero Tensor", name, i)
			}
			return argument(k, "%s[%d] is %v: want %v, as the others", name, i, x, t)
		}
	}
	return nil
}
