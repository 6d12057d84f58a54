package ops

import (
	"context"

	"peermesh/ops/tensor"
)

// A task is a collective from its issue to its end: the Work that the caller holds,
// and all that is needed to do it.
type task struct {
	Work
	g    *Group
	ctx  context.Context // the caller's
	run  run
	body func(do func() error) error // surrounds the moving; nil: just that
}

// task prepares a collective whose root, if it has one, is a rank of the group.
func (g *Group) task(k Kind, p plan, x tensor.Tensor, op tensor.Op, root int) *task {
	if root != noRoot {
		root = g.ranks.world(root)
	}
	t := &task{g: g, run: run{
		crew: &g.crew, op: op, rounds: p.rounds,
		call: Call{Kind: k, DType: x.DType(), Op: op.Code(), Count: uint64(x.Len()), Root: int32(root), Digest: p.digest ^ op.Digest()},
	}}
	t.run.over(newLayout(x, p.chunks, p.lanes))
	return t
}

// issue gives a task its number, in the order of the calls, and has it done.
func (g *Group) issue(ctx context.Context, k *task) *Work {
	k.ctx = ctx
	k.begin()
	g.queue.put(&k.Work, k)
	return &k.Work
}

// number is called in the order of issue.
func (k *task) number() { k.run.call.Seq = k.g.ledger.issue(k.run.call) }

// perform does the task when its turn has come.
func (k *task) perform() error {
	g := k.g
	ctx := g.crew.begin(k.ctx, k.run.call)
	defer g.crew.end()
	if err := g.ledger.begin(k.run.call, g.crew.bound.cancel); err != nil {
		return err
	}
	broke, err := false, ctx.Err()
	switch {
	case err != nil:
		err = context.Cause(ctx)
	case k.body == nil:
		broke, err = g.crew.do(ctx, &k.run)
	default:
		err = k.body(func() (err error) {
			broke, err = g.crew.do(ctx, &k.run)
			return err
		})
	}
	return g.ledger.end(k.run.call, broke, err)
}
