package trainer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"

	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

var (
	errDead = errors.New("arena: this member is dead")
	errGrow = errors.New("arena: to let newcomers in")
)

// An arena makes worlds in memory of members that die and come: a world forms when
// all who are alive wait for one.
type arena struct {
	mu      sync.Mutex
	members map[int]*member // who are alive
	met     map[int]bool    // who have been in a world with member 0
}

// A member is one process of an arena.
type member struct {
	arena *arena
	id    int
	wait  chan *arenaWorld // not nil while it waits; of room for one
	world *arenaWorld

	worlds, carried int // so far, and those in which it was told what the run had done
	advanced, early int // worlds said to have got on, and those of them in which a rank had taken no step

	sends  int // so far, in all worlds
	dieAt  int // the send before which it dies; zero: never
	onSend func()
}

// An arenaWorld is a memnet world that counts its member's sends.
type arenaWorld struct {
	*memnet.World
	m     *member
	ranks []*arenaWorld
	taken int // steps
}

func newArena() *arena { return &arena{members: make(map[int]*member), met: make(map[int]bool)} }

// metFirst reports whether a member was ever in a world with member 0.
func (a *arena) metFirst(id int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.met[id]
}

func (a *arena) join(id int) *member {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := &member{arena: a, id: id}
	a.members[id] = m
	return m
}

// kill is the death of a process: its world ends, and it gets no other.
func (m *member) kill() {
	a := m.arena
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.members[m.id] != m {
		return
	}
	delete(a.members, m.id)
	if m.world != nil {
		m.world.Kill()
	}
	if m.wait != nil {
		close(m.wait)
	}
	a.form()
}

// leave is kill of a member that has no further use for its world.
func (m *member) leave() {
	m.arena.mu.Lock()
	defer m.arena.mu.Unlock()
	delete(m.arena.members, m.id)
	m.arena.form()
}

// Next waits for all who are alive.
func (m *member) Next(ctx context.Context) (World, error) {
	a := m.arena
	a.mu.Lock()
	if a.members[m.id] != m {
		a.mu.Unlock()
		return nil, errDead
	}
	m.wait = make(chan *arenaWorld, 1)
	wait := m.wait
	a.form()
	a.mu.Unlock()
	select {
	case w, ok := <-wait:
		if !ok {
			return nil, errDead
		}
		return w, nil
	case <-ctx.Done():
		a.mu.Lock()
		defer a.mu.Unlock()
		m.wait = nil
		return nil, context.Cause(ctx)
	}
}

// form makes a world if everybody waits for one. The caller holds the lock.
func (a *arena) form() {
	ids := slices.Sorted(maps.Keys(a.members))
	for _, id := range ids {
		if a.members[id].wait == nil {
			return
		}
	}
	ranks := make([]*arenaWorld, len(ids))
	for rank, w := range memnet.New(len(ids)) {
		m := a.members[ids[rank]]
		m.world = &arenaWorld{World: w, m: m, ranks: ranks}
		ranks[rank] = m.world
		a.met[m.id] = a.met[m.id] || ids[0] == 0
		m.worlds++
		m.wait <- m.world
		m.wait = nil
	}
}

// Newcomers sees members who wait while this one does not.
func (w *arenaWorld) Newcomers() error {
	a := w.m.arena
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.members {
		if m.wait != nil {
			return errGrow
		}
	}
	return nil
}

// Carried counts.
func (w *arenaWorld) Carried() {
	w.m.arena.mu.Lock()
	defer w.m.arena.mu.Unlock()
	w.m.carried++
}

// took counts a step.
func (m *member) took() {
	m.arena.mu.Lock()
	defer m.arena.mu.Unlock()
	m.world.taken++
}

// Advanced finds ranks that have not got on.
func (w *arenaWorld) Advanced() {
	w.m.arena.mu.Lock()
	defer w.m.arena.mu.Unlock()
	w.m.advanced++
	if slices.ContainsFunc(w.ranks, func(r *arenaWorld) bool { return r.taken == 0 }) {
		w.m.early++
	}
}

func (w *arenaWorld) Send(ctx context.Context, to int, lane uint64, tag [40]byte, n int64, parts iter.Seq2[[]byte, error]) error {
	w.m.arena.mu.Lock()
	w.m.sends++
	die, f := w.m.sends == w.m.dieAt, w.m.onSend
	w.m.arena.mu.Unlock()
	if f != nil {
		f()
	}
	if die {
		w.m.kill()
	}
	return w.World.Send(ctx, to, lane, tag, n, parts)
}

// A tally is a member's training: one weight that follows the samples, in sums whose
// rounding shows any difference, and a tally of the samples that have counted.
type tally struct {
	w, grad, velocity []float32
	count, hits       []int64 // by epoch and sample
	mean              []float32
	random            *testRandom
	elastic           *Elastic
	member            *member
}

// testRandom is a counter whose draws differ.
type testRandom struct{ n byte }

func (r *testRandom) MarshalBinary() ([]byte, error) { return []byte{r.n}, nil }
func (r *testRandom) UnmarshalBinary(p []byte) error {
	if len(p) != 1 {
		return fmt.Errorf("%d bytes", len(p))
	}
	r.n = p[0]
	return nil
}

const (
	tallySamples = 23
	tallyEpochs  = 2
)

func newTally(t testing.TB, seed int) *tally {
	sampler, err := NewElasticSampler(tallySamples, ElasticConfig{Shuffle: true, Seed: 3, Batch: 3})
	if err != nil {
		t.Fatal(err)
	}
	r := &tally{
		w: []float32{float32(seed), 1}, grad: make([]float32, 2), velocity: make([]float32, 2),
		count: make([]int64, tallySamples*tallyEpochs), hits: make([]int64, tallySamples*tallyEpochs),
		mean: make([]float32, 1), random: new(testRandom),
	}
	r.elastic = &Elastic{
		State: &State{
			Tensors: []*Param{
				{Name: "w", Value: tensor.Of(r.w), Grad: tensor.Of(r.grad)},
				{Name: "velocity", Value: tensor.Of(r.velocity)},
				{Name: "count", Value: tensor.Of(r.count)},
			},
			Buffers: []*Param{{Name: "mean", Value: tensor.Of(r.mean)}},
			Random:  r.random,
		},
		Sampler: sampler, Epochs: tallyEpochs, Update: r.update,
	}
	return r
}
