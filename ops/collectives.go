package ops

import (
	"context"
	"fmt"
	"slices"

	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
)

// AllReduce folds x over all ranks and leaves the result, bit-identical, in
// every rank's x. Every rank gives the same count, element type and op.
func (g *Group) AllReduce(ctx context.Context, x tensor.Tensor, op tensor.Op) *Work {
	if err := reducible(KindAllReduce, x, op); err != nil {
		return failed(err)
	}
	return g.collective(ctx, KindAllReduce, x, op, noRoot, g.steps(op, x))
}

// Broadcast copies x of rank src to every rank's x.
func (g *Group) Broadcast(ctx context.Context, x tensor.Tensor, src int) *Work {
	root, err := g.rooted(KindBroadcast, x, src)
	if err != nil {
		return failed(err)
	}
	return g.collective(ctx, KindBroadcast, x, tensor.Op{}, root, nil)
}

// Reduce folds x over all ranks into x of rank dst; the others' x stay as they
// are.
func (g *Group) Reduce(ctx context.Context, x tensor.Tensor, op tensor.Op, dst int) *Work {
	root, err := g.rooted(KindReduce, x, dst)
	if err != nil {
		return failed(err)
	}
	if err := reducible(KindReduce, x, op); err != nil {
		return failed(err)
	}
	if g.Rank() == root {
		return g.collective(ctx, KindReduce, x, op, root, g.steps(op, x))
	}
	if g.Rank() < 0 {
		return skipped()
	}
	t, p, err := g.begin(KindReduce, x.DType(), x.Len(), op, root)
	if err != nil {
		return failed(err)
	}
	t.body = func(do func() error) error {
		part, lent := scratch.tensor(x.DType(), x.Len()) // where partial sums may land
		defer scratch.put(lent)
		if err := tensor.Copy(part, x); err != nil {
			return err
		}
		t.run.over(newLayout(part, p.chunks, p.lanes))
		return g.fold(op, part, part.Slice(0, 0), do)
	}
	return g.issue(ctx, t)
}

// AllGather leaves every rank's in, by rank, in every rank's out. For an in of
// shape (d0, d1, …), the same on all ranks, out has shape (Size·d0, d1, …), with the
// ranks' parts after each other, or (Size, d0, d1, …), with them stacked. A tensor of
// one dimension stands for any shape of its count, so in may be this rank's Slice of
// out.
func (g *Group) AllGather(ctx context.Context, out, in tensor.Tensor) *Work {
	if err := g.spread(KindAllGather, "out", out, "in", in); err != nil {
		return failed(err)
	}
	return g.collective(ctx, KindAllGather, out, tensor.Op{}, noRoot, func(do func() error) error {
		lo, hi := share(out.Len(), g.Rank(), g.Size())
		if err := tensor.Copy(out.Slice(lo, hi), in); err != nil {
			return err
		}
		return do()
	})
}

// ReduceScatter folds in over all ranks and leaves part r of the result, of
// Size equal ones, in rank r's out. Shapes are as in AllGather, in being the whole.
// in stays as it is.
func (g *Group) ReduceScatter(ctx context.Context, out, in tensor.Tensor, op tensor.Op) *Work {
	if err := g.spread(KindReduceScatter, "in", in, "out", out); err != nil {
		return failed(err)
	}
	if err := reducible(KindReduceScatter, in, op); err != nil {
		return failed(err)
	}
	if g.Rank() < 0 {
		return skipped()
	}
	return g.reduceScatter(ctx, out, g.parts(in), op)
}

// Barrier ends on no rank before it has begun on all.
func (g *Group) Barrier(ctx context.Context) *Work {
	return g.collective(ctx, KindBarrier, tensor.Of([]uint8{}), tensor.Op{}, noRoot, nil)
}

// Run runs a schedule of the caller's own over x, the same on every rank; op
// folds where a move says so, and is the zero Op if none does. A schedule does
// not say where contributions start and results end, so an op that takes steps
// there is refused: fold by tensor.Sum, and call Op.Before and Op.After where
// they belong. Prove the schedule with schedule.Check first: one whose ranks
// wait for each other in a circle ends by the timeout.
func (g *Group) Run(ctx context.Context, s schedule.Schedule, x tensor.Tensor, op tensor.Op) *Work {
	if g.Rank() < 0 {
		return skipped()
	}
	if s.Ranks != g.Size() {
		return failed(argument(KindRun, "schedule %q is for %d ranks, the group has %d", s.Name, s.Ranks, g.Size()))
	}
	if err := valid(KindRun, "x", x); err != nil {
		return failed(err)
	}
	if g.plans.err != nil {
		return failed(g.plans.err)
	}
	if err := fits(s, x, op); err != nil {
		return failed(err)
	}
	p, err := g.plans.given(s, x.Bytes())
	if err != nil {
		return failed(err)
	}
	return g.issue(ctx, g.task(KindRun, p, x, op, noRoot))
}

// collective chooses a schedule for x and issues it. root is a rank of the group,
// or noRoot. body, when not nil, surrounds the moving of data.
func (g *Group) collective(ctx context.Context, k Kind, x tensor.Tensor, op tensor.Op, root int, body func(func() error) error) *Work {
	if g.Rank() < 0 {
		return skipped()
	}
	t, p, err := g.begin(k, x.DType(), x.Len(), op, root)
	if err != nil {
		return failed(err)
	}
	t.run.over(newLayout(x, p.chunks, p.lanes))
	t.body = body
	return g.issue(ctx, t)
}

// begin chooses a schedule for that many elements and makes the task that is to run
// it, over a layout that is still to be given. Where ranks do not know each other's
// counts these have no say in the choice.
func (g *Group) begin(k Kind, dtype tensor.DType, count int, op tensor.Op, root int) (*task, *plan, error) {
	bytes := int64(count) * int64(dtype.Size())
	if k.ownCounts() {
		bytes = 0
	}
	p, err := g.plans.choose(k, root, bytes)
	if err != nil {
		return nil, nil, err
	}
	return g.unlaid(k, p, dtype, count, op, root), p, nil
}

// reducible refuses a tensor or an op that no rank could fold.
func reducible(k Kind, x tensor.Tensor, op tensor.Op) error {
	if err := valid(k, "x", x); err != nil {
		return err
	}
	if err := op.Check(x.DType()); err != nil {
		return argument(k, "%w", err)
	}
	return nil
}

// steps surrounds the moving with op's steps on x; nil where it has none.
func (g *Group) steps(op tensor.Op, x tensor.Tensor) func(do func() error) error {
	if !op.Steps() {
		return nil
	}
	return func(do func() error) error { return g.fold(op, x, x, do) }
}

// fold takes op's steps around the moving: the one before on what this rank
// gives, the one after on what it keeps of the result.
func (g *Group) fold(op tensor.Op, gives, keeps tensor.Tensor, do func() error) error {
	if err := op.Before(gives); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return op.After(keeps, g.Size())
}

func valid(k Kind, name string, x tensor.Tensor) error {
	if !x.DType().Valid() {
		return argument(k, "%s is the zero Tensor: make one with tensor.Of or tensor.New", name)
	}
	return nil
}

// rooted checks a tensor and a root as a caller gives it, and returns the root's
// rank in the group.
func (g *Group) rooted(k Kind, x tensor.Tensor, root int) (int, error) {
	i, ok := g.member(root)
	if !ok && g.Rank() >= 0 {
		return 0, g.stranger(k, "root", root)
	}
	return i, valid(k, "x", x)
}

// spread refuses a whole that is not Size parts, one after the other or stacked.
func (g *Group) spread(k Kind, wholeName string, whole tensor.Tensor, partName string, part tensor.Tensor) error {
	if err := valid(k, wholeName, whole); err != nil {
		return err
	}
	if g.Rank() >= 0 && (whole.DType() != part.DType() || !holds(whole, part, g.Size())) {
		return argument(k, "%s is %v: want %d times the %v of %s, one after the other or stacked", wholeName,
			whole, g.Size(), part, partName)
	}
	return nil
}

// holds reports whether a tensor has the shape of n others.
func holds(whole, part tensor.Tensor, n int) bool {
	if whole.Len() != n*part.Len() {
		return false
	}
	w, p := whole.Shape(), part.Shape()
	if len(w) == 1 || len(p) == 1 {
		return true
	}
	stacked := slices.Equal(w, append([]int{n}, p...))
	joined := len(p) > 0 && len(w) == len(p) && w[0] == n*p[0] && slices.Equal(w[1:], p[1:])
	return stacked || joined
}

func indexed(name string, i int) string { return fmt.Sprintf("%s[%d]", name, i) }

// fits refuses a schedule whose moves leave the ranks or the chunks, that folds
// without an op, or that would carry a chunk to a chunk of another length.
func fits(s schedule.Schedule, x tensor.Tensor, op tensor.Op) error {
	if s.Chunks < 1 {
		return argument(KindRun, "schedule %q has %d chunks", s.Name, s.Chunks)
	}
	for i, round := range s.Rounds {
		for _, m := range round {
			switch {
			case m.From == m.To, min(m.From, m.To, m.Src, m.Dst) < 0, max(m.From, m.To) >= s.Ranks,
				m.N < 1, max(m.Src, m.Dst) > s.Chunks-m.N:
				return argument(KindRun, "schedule %q, round %d: malformed move %v", s.Name, i, m)
			case m.Src != m.Dst && x.Len()%s.Chunks != 0:
				return argument(KindRun, "schedule %q moves chunks to other places, so %d elements must divide by %d", s.Name, x.Len(), s.Chunks)
			case m.Reduce && op.Steps():
				return argument(KindRun, "schedule %q folds, and %v is more than a fold", s.Name, op)
			case m.Reduce && x.Len() > 0 && op.Check(x.DType()) != nil:
				return argument(KindRun, "schedule %q folds: %w", s.Name, op.Check(x.DType()))
			}
		}
	}
	return nil
}
