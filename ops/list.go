package ops

import (
	"context"
	"encoding/binary"
	"hash/fnv"

	"peermesh/ops/tensor"
)

// AllGatherList leaves every rank's in in every rank's list: the i-th rank's in the
// i-th tensor, which has its count. Counts may differ between ranks, but every rank
// gives the same ones: it is torch.distributed's all_gather and MPI_Allgatherv. in
// may be this rank's tensor of the list.
func (g *Group) AllGatherList(ctx context.Context, out []tensor.Tensor, in tensor.Tensor) *Work {
	const k = KindAllGather
	if g.Rank() < 0 {
		return skipped()
	}
	if err := valid(k, "in", in); err != nil {
		return failed(err)
	}
	if err := g.list(k, "out", out, in); err != nil {
		return failed(err)
	}
	if mine := out[g.Rank()]; mine.Len() != in.Len() {
		return failed(argument(k, "out[%d] is %v, in is %v: what a rank gives itself must have one count", g.Rank(), mine, in))
	}
	t, p, err := g.begin(k, in.DType(), total(out), tensor.Op{}, noRoot)
	if err != nil {
		return failed(err)
	}
	t.run.over(listLayout(in.DType(), out, p.lanes))
	t.run.call.Digest ^= sizesDigest(out)
	t.body = func(do func() error) error {
		if err := tensor.Copy(out[g.Rank()], in); err != nil {
			return err
		}
		return do()
	}
	return g.issue(ctx, t)
}

// ReduceScatterList folds the tensors of every rank's list, each over all ranks, and
// leaves the r-th result in rank r's out, which has its count. Counts may differ
// within the list, but every rank gives the same ones: it is torch.distributed's
// reduce_scatter and MPI_Reduce_scatter. The list stays as it is.
func (g *Group) ReduceScatterList(ctx context.Context, out tensor.Tensor, in []tensor.Tensor, op tensor.Op) *Work {
	const k = KindReduceScatter
	if g.Rank() < 0 {
		return skipped()
	}
	if err := reducible(k, out, op); err != nil {
		return failed(err)
	}
	if err := g.list(k, "in", in, out); err != nil {
		return failed(err)
	}
	if mine := in[g.Rank()]; mine.Len() != out.Len() {
		return failed(argument(k, "in[%d] is %v, out is %v: what a rank keeps must have one count", g.Rank(), mine, out))
	}
	return g.reduceScatter(ctx, out, in, op)
}

// reduceScatter folds parts that have been checked.
func (g *Group) reduceScatter(ctx context.Context, out tensor.Tensor, in []tensor.Tensor, op tensor.Op) *Work {
	t, p, err := g.begin(KindReduceScatter, out.DType(), total(in), op, noRoot)
	if err != nil {
		return failed(err)
	}
	t.run.call.Digest ^= sizesDigest(in)
	t.body = func(do func() error) error {
		// Made when its turn has come, so that many may be issued at little cost.
		sums := make([]tensor.Tensor, len(in)) // where partial sums may land
		all, lent := scratch.tensor(out.DType(), total(in))
		defer scratch.put(lent)
		at := 0
		for r, x := range in {
			sums[r] = all.Slice(at, at+x.Len())
			at += x.Len()
			if err := tensor.Copy(sums[r], x); err != nil {
				return err
			}
		}
		t.run.over(listLayout(out.DType(), sums, p.lanes))
		mine := sums[g.Rank()]
		if err := g.fold(op, all, mine, do); err != nil {
			return err
		}
		return tensor.Copy(out, mine)
	}
	return g.issue(ctx, t)
}

// AllReduceCoalesced is AllReduce of many tensors of one element type as one Work
// and one set of messages, as if they were one tensor, end to end. Every rank gives
// the same counts.
func (g *Group) AllReduceCoalesced(ctx context.Context, xs []tensor.Tensor, op tensor.Op) *Work {
	const k = KindAllReduce
	if g.Rank() < 0 {
		return skipped()
	}
	if err := several(k, "xs", xs); err != nil {
		return failed(err)
	}
	if err := reducible(k, xs[0], op); err != nil {
		return failed(err)
	}
	x := join(xs[0].DType(), xs)
	t, p, err := g.begin(k, x.DType(), x.Len(), op, noRoot)
	if err != nil {
		return failed(err)
	}
	t.run.over(newLayout(x, p.chunks, p.lanes))
	t.run.call.Digest ^= sizesDigest(xs)
	t.body = g.steps(op, x)
	return g.issue(ctx, t)
}

// AllGatherCoalesced is AllGather of each of ins to the one of outs in its place, all
// of one element type, as one Work and one set of messages. Every rank gives the same
// counts.
func (g *Group) AllGatherCoalesced(ctx context.Context, outs, ins []tensor.Tensor) *Work {
	const k = KindAllGather
	if g.Rank() < 0 {
		return skipped()
	}
	if err := several(k, "ins", ins); err != nil {
		return failed(err)
	}
	if len(outs) != len(ins) {
		return failed(argument(k, "outs has %d tensors, ins %d", len(outs), len(ins)))
	}
	// A rank's chunk is all that it gives, so that one message has something of every
	// tensor, and each tensor's part lands where it belongs in its own memory.
	dtype := ins[0].DType()
	chunks := make([]tensor.Tensor, g.Size()) // by rank, what is of it in all of outs
	pieces := make([][]tensor.Tensor, g.Size())
	for i, out := range outs {
		if err := g.spread(k, indexed("outs", i), out, indexed("ins", i), ins[i]); err != nil {
			return failed(err)
		}
		for r, part := range g.parts(out) {
			pieces[r] = append(pieces[r], part)
		}
	}
	for r := range chunks {
		chunks[r] = join(dtype, pieces[r])
	}
	t, p, err := g.begin(k, dtype, total(chunks), tensor.Op{}, noRoot)
	if err != nil {
		return failed(err)
	}
	t.run.over(listLayout(dtype, chunks, p.lanes))
	t.run.call.Digest ^= sizesDigest(ins)
	t.body = func(do func() error) error {
		for i, in := range ins {
			if err := tensor.Copy(pieces[g.Rank()][i], in); err != nil {
				return err
			}
		}
		return do()
	}
	return g.issue(ctx, t)
}

// several refuses a list of nothing, or of several element types.
func several(k Kind, name string, list []tensor.Tensor) error {
	if len(list) == 0 {
		return argument(k, "%s is empty", name)
	}
	if err := valid(k, indexed(name, 0), list[0]); err != nil {
		return err
	}
	return alike(k, name, list, list[0].DType())
}

func total(list []tensor.Tensor) (n int) {
	for _, x := range list {
		n += x.Len()
	}
	return n
}

// sizesDigest is what ranks compare that give the same counts; 0 where all are
// equal, as they are without a list.
func sizesDigest(list []tensor.Tensor) uint32 {
	h := fnv.New32a()
	equal := true
	for _, x := range list {
		equal = equal && x.Len() == list[0].Len()
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(x.Len()))) // a Hash's Write never fails
	}
	if equal {
		return 0
	}
	return h.Sum32()
}
