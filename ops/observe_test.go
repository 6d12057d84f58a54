package ops_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// notes writes down what an Observer is told.
type notes struct {
	mu     sync.Mutex
	begun  []ops.Operation
	states map[uint64]string
	errs   map[uint64]error
	soon   int // operations whose time was left to their start
}

func newNotes() *notes { return &notes{states: make(map[uint64]string), errs: make(map[uint64]error)} }

func (n *notes) Begin(o ops.Operation, at time.Time) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.begun = append(n.begun, o)
	if at.IsZero() {
		n.soon++
	}
	id := uint64(len(n.begun))
	n.states[id] += "begin"
	return id
}

func (n *notes) Start(id uint64, at time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.states[id] += " start"
}

func (n *notes) End(id uint64, at time.Time, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.states[id] += " end"
	n.errs[id] = err
}

// only is the one operation that was observed, which has ended by now.
func (n *notes) only() (ops.Operation, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.begun) != 1 {
		return ops.Operation{}, fmt.Errorf("%d operations observed: %v", len(n.begun), n.begun)
	}
	o := n.begun[0]
	if s := n.states[1]; s != "begin start end" {
		return o, fmt.Errorf("%v: %s", o, s)
	}
	return o, n.errs[1]
}

func TestObserverIsToldOfEveryKind(t *testing.T) {
	for name, c := range map[string]struct {
		call func(g *ops.Group) error
		want ops.Operation // on rank 0 of two
	}{
		"all_reduce": {func(g *ops.Group) error { return g.AllReduce(ctx, f32(8), tensor.Sum).Wait() },
			ops.Operation{Call: ops.Call{Kind: ops.KindAllReduce, DType: tensor.Float32, Op: tensor.Sum.Code(), Count: 8, Root: -1}, Bytes: 32, Peer: -1}},
		"broadcast": {func(g *ops.Group) error { return g.Broadcast(ctx, f32(3), 1).Wait() },
			ops.Operation{Call: ops.Call{Kind: ops.KindBroadcast, DType: tensor.Float32, Count: 3, Root: 1}, Bytes: 12, Peer: -1}},
		"object": {func(g *ops.Group) error { _, err := ops.AllGatherObject(ctx, g, "a"); return err },
			ops.Operation{Call: ops.Call{Kind: ops.KindAllGatherObject, DType: tensor.Int64, Root: -1}, Peer: -1}},
		"measure": {func(g *ops.Group) error { return g.Measure(ctx) },
			ops.Operation{Call: ops.Call{Kind: ops.KindMeasure, DType: tensor.Int64, Count: 8, Root: -1}, Bytes: 64, Peer: -1}},
		"message": {func(g *ops.Group) error {
			if g.Rank() == 0 {
				return g.Send(ctx, f32(2), 1, 7)
			}
			return g.Recv(ctx, f32(2), 0, 7)
		}, ops.Operation{Call: ops.Call{Kind: ops.KindSend, DType: tensor.Float32, Count: 2, Root: -1}, Bytes: 8, Peer: 1, Tag: 7, Send: true}},
		"message from any": {func(g *ops.Group) error {
			if g.Rank() == 1 {
				return g.Send(ctx, f32(2), 0, 7)
			}
			_, err := g.RecvAny(ctx, f32(2), 7)
			return err
		}, ops.Operation{Call: ops.Call{Kind: ops.KindSend, DType: tensor.Float32, Count: 2, Root: -1}, Bytes: 8, Peer: -1, Tag: 7}},
		"batch": {func(g *ops.Group) error {
			return g.Batch(ctx, []ops.P2P{{Send: g.Rank() == 0, X: f32(1), Peer: 1 - g.Rank()}}).Wait()
		}, ops.Operation{Call: ops.Call{Kind: ops.KindSend, DType: tensor.Float32, Count: 1, Root: -1}, Bytes: 4, Peer: 1, Send: true}},
	} {
		t.Run(name, func(t *testing.T) {
			all := []*notes{newNotes(), newNotes()}
			check(t, observed(all, c.call))
			got, err := all[0].only()
			if err != nil {
				t.Fatal(err)
			}
			c.want.Digest, c.want.Algorithm = got.Digest, got.Algorithm
			c.want.Size = 2
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("observed %+v,\nwant     %+v", got, c.want)
			}
			if (got.Algorithm == "") != (got.Kind == ops.KindSend) {
				t.Errorf("algorithm %q", got.Algorithm)
			}
			if other, err := all[1].only(); err != nil || other.Rank != 1 {
				t.Errorf("rank 1 observed %+v, %v", other, err)
			}
		})
	}
}

// observed runs f on a rank for each of the observers.
func observed(all []*notes, f func(g *ops.Group) error) []error {
	var groups []*ops.Group
	for r, w := range memnet.New(len(all)) {
		groups = append(groups, ops.NewGroup(w, ops.Config{Observer: all[r]}))
	}
	return each(groups, f)
}

// Operations are begun in the order of their numbers, also in a group that is split
// off, and what is refused or skipped is none.
func TestObserverSeesTheOrder(t *testing.T) {
	all := []*notes{newNotes(), newNotes(), newNotes()}
	check(t, observed(all, func(g *ops.Group) error {
		if err := g.AllReduce(ctx, tensor.Tensor{}, tensor.Sum).Wait(); err == nil {
			return errors.New("the zero Tensor was summed")
		}
		some, err := g.Split(ctx, []int{0, 2})
		if err != nil {
			return err
		}
		works := []*ops.Work{some.Barrier(ctx), some.AllReduce(ctx, f32(4), tensor.Max), g.Barrier(ctx)}
		for _, w := range works {
			if err := w.Wait(); err != nil {
				return err
			}
		}
		return nil
	}))
	for rank, n := range all {
		var got []string
		child := uint32(0)
		for _, o := range n.begun {
			if o.Group != 0 {
				child = o.Group
				got = append(got, fmt.Sprintf("%v of %d", o.Call, o.Size))
			} else {
				got = append(got, fmt.Sprintf("%v of %d in the world", o.Call, o.Size))
			}
		}
		want := 4
		if rank == 1 {
			want = 2
		}
		if len(got) != want || (child != 0) != (rank != 1) {
			t.Errorf("rank %d observed %q", rank, got)
		}
	}
}

// Who waits for each operation at once has it start at once, and the clock is not looked
// at for its place; what stands in a line is told when it came.
func TestObserverIsToldOfSoon(t *testing.T) {
	n := newNotes()
	g := ops.NewGroup(memnet.New(1)[0], ops.Config{Observer: n})
	const many = 1000 // a called goroutine may be faster than who waits, and then it takes eight more
	for range many {
		check(t, []error{g.AllReduce(ctx, f32(1), tensor.Sum).Wait()})
	}
	if n.soon == 0 {
		t.Errorf("of %d operations, each waited for at once, none was to start soon", many)
	}
	n.soon = 0
	first, second := g.AllReduce(ctx, f32(1), tensor.Sum), g.AllReduce(ctx, f32(1), tensor.Sum)
	check(t, []error{first.Wait(), second.Wait()})
	if n.soon > 1 {
		t.Error("the second of a line was to start soon")
	}
}

func TestObserverSeesTheError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNotes()
		g := ops.NewGroup(memnet.New(2)[0], ops.Config{Observer: n, Timeout: time.Minute})
		begun := time.Now()
		if err := g.Barrier(ctx).Wait(); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if _, err := n.only(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("observed %v", err)
		}
		if time.Since(begun) < time.Minute {
			t.Error("ended early")
		}
		_, err := g.RecvAny(ctx, f32(1), 0)
		if !errors.Is(n.errs[2], err) || err == nil {
			t.Errorf("observed %v, want %v", n.errs[2], err)
		}
	})
}
