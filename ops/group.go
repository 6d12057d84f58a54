package ops

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"peermesh/ops/schedule"
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
	// Links prices the schedules; nil is what the Transport knows of its links, as
	// mesh.World does, or else DefaultLinks. It must price alike on every rank.
	Links schedule.Links
	// Observer is told of every operation; nil: nobody is. It changes no result, and
	// may be another on each rank.
	Observer Observer
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
	crew   crew   // what does them
	ledger ledger // what was issued, and who disagrees

	mu    sync.Mutex
	pairs map[pairKey]*pair
}

// NewGroup makes a group of all ranks of a world. It lives as long as the world.
// A bad Config is the error of every operation.
func NewGroup(t Transport, c Config) *Group {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if _, ok := t.(surveyor); !ok && c.Links == nil {
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
	g.plans.source = func() (schedule.Links, error) { return r.among(members) }
	g.ledger.init(t, members, id)
	g.crew.init(t, members, id, c.Timeout)
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

// lane is the transport's name for lane i of the group.
func (g *Group) lane(i int) uint64 { return g.crew.lane(i) }

// bounded ends a context by the group's timeout.
func (g *Group) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, g.c.Timeout, late(g.c.Timeout))
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
