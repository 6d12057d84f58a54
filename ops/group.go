package ops

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"peermesh/ops/schedule"
	"peermesh/ops/tensor"
)

const (
	// DefaultTimeout bounds one operation where Config.Timeout is zero, as in
	// torch.distributed.
	DefaultTimeout = 30 * time.Minute
	// MaxLanes bounds the lanes of one group between two ranks.
	MaxLanes = 16
)

// Config sets up a Group. The zero value is a world's default group.
type Config struct {
	// ID tells groups that are made of one world by NewGroup apart: each has another,
	// below 1<<31, and the same on every rank. Groups that are made by Split and its
	// like find theirs themselves, above.
	ID uint32
	// Timeout bounds each operation; zero is DefaultTimeout. A call's context may
	// end it earlier.
	Timeout time.Duration
	// Algorithm names the schedule of every collective that has one of that name, as
	// in "ring"; or of one collective, as in "all_reduce=ring,broadcast=tree". The
	// others go by price. If it is empty the environment variable PEERMESH_ALGO
	// counts. It must be the same on every rank. Candidates has the names.
	Algorithm string
	// Deterministic takes only schedules that add in the canonical order of package
	// schedule, which is that of CanonicalOrder by ranks of the group: even ones, odd
	// ones, and so on within each. The bits of a result then depend on the ranks'
	// elements alone, and not on the algorithm, the size of the tensor, the place in
	// it or the tensors beside it in a bucket. (Without it they do not depend on
	// lanes, timing or load either, and are the same on all ranks.) A collective
	// that adds nothing is free to choose. It must be the same on every rank.
	Deterministic bool
	// MaxObject bounds the encoding of one object, in bytes; zero is
	// DefaultMaxObject. It must be the same on every rank.
	MaxObject int64
	// Lanes is how many lanes a collective is cut into, at most MaxLanes; zero
	// goes by size. It must be the same on every rank, and changes no result.
	Lanes int
	// Links prices the schedules; nil is DefaultLinks. It must price alike on
	// every rank.
	Links schedule.Links
}

// A Group is the ranks of a world, or some of them, that run operations together.
// Every rank issues its collectives in the same order; a message has an order of
// its own for each peer and tag. All methods may be called from any goroutine, but
// the order of issue is the order of the calls.
type Group struct {
	*core
	relative bool // ranks in and out are of the group, not of the world
}

// A core is what the views of a group share.
type core struct {
	root   *root
	t      Transport // the world, or the part of it that is the group
	ranks  ranks
	id     uint32 // in the lanes and the signals' channel
	c      Config
	plans  plans
	queue  queue  // of collectives
	ledger ledger // what was issued, and who disagrees

	mu    sync.Mutex
	pairs map[pairKey]*pair
}

// A root is what NewGroup was given, and all groups made from that share.
type root struct {
	t   Transport
	ids ids

	mu    sync.Mutex
	links schedule.Links
}

// priced are the links by which groups that are made now go.
func (r *root) priced() schedule.Links {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.links
}

func (r *root) relink(l schedule.Links) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.links = l
}

// NewGroup makes a group of all ranks of a world. It lives as long as the world.
// A bad Config is the error of every operation.
func NewGroup(t Transport, c Config) *Group {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Links == nil {
		c.Links = DefaultLinks
	}
	if c.Algorithm == "" {
		c.Algorithm = os.Getenv(AlgorithmVariable)
	}
	if c.MaxObject == 0 {
		c.MaxObject = DefaultMaxObject
	}
	return newGroup(&root{t: t, links: c.Links}, t, ranks{n: t.Size()}, c.ID, c)
}

func newGroup(r *root, t Transport, members ranks, id uint32, c Config) *Group {
	g := &Group{core: &core{root: r, t: t, ranks: members, id: id, c: c, pairs: make(map[pairKey]*pair)}}
	g.plans.init(t.Size(), t.Rank(), c)
	g.ledger.init(t, members, id)
	if g.Rank() >= 0 {
		t.OnSignal(id, g.onSignal)
	}
	return g
}

// onSignal hears what the others say past the lanes.
func (g *Group) onSignal(from int, p []byte) {
	s, err := decodeSignal(p, g.ranks)
	switch {
	case err != nil:
		log.Warnf("rank %d: %v", g.ranks.world(from), err)
	case s.kind == signalRefusal:
		g.refused(from, s)
	default:
		g.ledger.hear(from, s)
	}
}

// lane is the transport's name for lane i of the group's collectives.
func (g *Group) lane(i int) uint64 { return uint64(g.id)<<32 | uint64(i) }

// A task is a collective before it has a number.
type task struct {
	run  run
	body func(do func() error) error // surrounds the moving; nil: just that
}

// task prepares a collective whose root, if it has one, is a rank of the group.
func (g *Group) task(k Kind, p plan, x tensor.Tensor, op tensor.Op, root int) *task {
	if root != noRoot {
		root = g.ranks.world(root)
	}
	t := &task{run: run{
		t: g.t, ranks: g.ranks, lane: g.lane, op: op, rounds: p.rounds,
		waits: make([]atomic.Int32, g.Size()),
		call:  Call{Kind: k, DType: x.DType(), Op: op.Code(), Count: uint64(x.Len()), Root: int32(root), Digest: p.digest ^ op.Digest()},
	}}
	t.run.over(newLayout(x, p.chunks, p.lanes))
	return t
}

// issue gives a task its number, in the order of the calls, and has it done.
func (g *Group) issue(ctx context.Context, k *task) *Work {
	w := newWork()
	g.queue.put(
		func() { k.run.call.Seq = g.ledger.issue(k.run.call) },
		func() { w.finish(g.perform(ctx, k)) })
	return w
}

func (g *Group) perform(parent context.Context, k *task) error {
	ctx, stop := g.bound(parent)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	call := k.run.call
	if err := g.ledger.begin(call, cancel); err != nil {
		return err
	}
	defer g.ledger.watch(ctx, &k.run)()
	err := context.Cause(ctx)
	if err == nil {
		do := func() error { return k.run.do(ctx) }
		if k.body == nil {
			err = do()
		} else {
			err = k.body(do)
		}
	}
	return g.ledger.end(ctx, call, err)
}

// bound ends a context by the group's timeout.
func (g *Group) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	late := fmt.Errorf("no end within %v: %w", g.c.Timeout, context.DeadlineExceeded)
	return context.WithTimeoutCause(ctx, g.c.Timeout, late)
}

// check refuses what a bad Config would make of an operation.
func (c Config) check() error {
	switch {
	case c.Timeout < 0:
		return fmt.Errorf("ops: Config.Timeout is %v: want a positive time, or zero for %v", c.Timeout, DefaultTimeout)
	case c.Lanes < 0 || c.Lanes > MaxLanes:
		return fmt.Errorf("ops: Config.Lanes is %d: want 0 to %d", c.Lanes, MaxLanes)
	case c.MaxObject < 0:
		return fmt.Errorf("ops: Config.MaxObject is %d: want a positive number of bytes, or zero for %d", c.MaxObject, DefaultMaxObject)
	case c.ID >= madeID:
		return fmt.Errorf("ops: Config.ID is %#x: want less than %#x", c.ID, madeID)
	}
	_, err := parseAlgorithms(c.Algorithm)
	return err
}
