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
	plan *plan
	id   uint64 // for the Observer, if there is one
}

// task prepares a collective whose root, if it has one, is a rank of the group.
func (g *Group) task(k Kind, p *plan, x tensor.Tensor, op tensor.Op, root int) *task {
	t := g.unlaid(k, p, x.DType(), x.Len(), op, root)
	t.run.over(newLayout(x, p.chunks, p.lanes))
	return t
}

// unlaid is a task over a layout that is still to be given.
func (g *Group) unlaid(k Kind, p *plan, dtype tensor.DType, count int, op tensor.Op, root int) *task {
	if root != noRoot {
		root = g.ranks.world(root)
	}
	t := &task{g: g, plan: p}
	t.run.crew, t.run.op, t.run.rounds = &g.crew, op, p.rounds
	t.run.call = Call{Kind: k, DType: dtype, Op: op.Code(), Count: uint64(count), Root: int32(root), Digest: p.digest ^ op.Digest()}
	return t
}

// issue gives a task its number, in the order of the calls, and has it done. The Work
// is a part of the task, so that the two are one allocation.
func (g *Group) issue(ctx context.Context, k *task) *Work {
	k.ctx = ctx
	k.begin()
	g.queue.put(&k.Work, k)
	return &k.Work
}

// number is called in the order of issue.
func (k *task) number(soon bool) {
	k.run.call.Seq = k.g.ledger.issue(k.run.call)
	if k.g.c.Observer != nil {
		k.id = k.g.announce(soon, Operation{Call: k.run.call, Algorithm: k.plan.name, Peer: -1})
	}
}

// perform does the task when its turn has come.
func (k *task) perform() error {
	err := k.move()
	if k.g.c.Observer != nil {
		k.g.c.Observer.End(k.id, now(), err)
	}
	return err
}

func (k *task) move() error {
	g := k.g
	ctx := g.crew.begin(k.ctx, k.run.call)
	defer g.crew.end()
	if g.c.Observer != nil {
		g.c.Observer.Start(k.id, g.crew.bound.begun())
	}
	if err := g.ledger.begin(k.run.call, g.crew.bound.cancel); err != nil {
		return err
	}
	broke, err := false, error(nil)
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case k.body == nil:
		broke, err = g.crew.do(ctx, &k.run)
	default:
		broke, err = k.surround(ctx)
	}
	return g.ledger.end(k.run.call, broke, err)
}

// surround does the task within its body. An error of the body's own, of an argument or
// of memory, is no broken transport: there is nobody to wait for who could explain it.
func (k *task) surround(ctx context.Context) (broke bool, err error) {
	err = k.body(func() (err error) {
		broke, err = k.run.do(ctx, &k.run)
		return err
	})
	return broke, err
}
