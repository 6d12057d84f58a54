package local

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
	"peermesh/trainer/compress"
)

// worlds are those of one rank, in order.
type worlds []*memnet.World

type world struct{ *memnet.World }

func (world) Newcomers() error { return nil }

func (world) Carried() {}

func (world) Advanced() {}

func (w *worlds) Next(context.Context) (trainer.World, error) {
	if len(*w) == 0 {
		return nil, errors.New("no more worlds")
	}
	next := (*w)[0]
	*w = (*w)[1:]
	return world{next}, nil
}

var errDeath = errors.New("killed")

// A trainee is a rank of an elastic run.
type trainee struct {
	*pupil
	replica *Replica
	elastic trainer.Elastic
	dies    int64    // in this step; 0: never
	late    bool     // in that step, when its exchange has ended
	meet    *meeting // in that step, before it dies; nil: none
	begins  []string // the model at the beginning of each world
}

// A meeting has a rank die when the others have begun a step, and so ended all before.
type meeting struct {
	step  int64
	begun sync.WaitGroup
}

const traineeSteps = 23

func newTrainee(t *testing.T, m Method, id int) *trainee {
	t.Helper()
	u := &trainee{pupil: newPupil(tensor.Float64, id)}
	var err error
	if u.replica, err = New(m, u.params()); err != nil {
		t.Fatal(err)
	}
	inner, err := trainer.NewSGD(u.params(), trainer.SGDConfig{LR: innerRate, Momentum: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	sampler, err := trainer.NewElasticSampler(1000, trainer.ElasticConfig{Global: 4})
	if err != nil {
		t.Fatal(err)
	}
	u.elastic = trainer.Elastic{State: &trainer.State{Tensors: u.replica.State()}, Sampler: sampler, Steps: traineeSteps,
		Begin: func(ctx context.Context, g *ops.Group) error {
			err := u.replica.Begin(ctx, g)
			u.begins = append(u.begins, hash(t, u.params()))
			return err
		},
		Compute: func(_ context.Context, s trainer.Share) error {
			dies := u.dies != 0 && s.Step+1 == u.dies
			switch {
			case u.meet == nil || s.Step+1 != u.meet.step:
			case dies:
				u.meet.begun.Wait()
			default:
				u.meet.begun.Done()
				u.meet = nil
			}
			if dies && !u.late {
				return errDeath
			}
			u.step()
			if err := inner.Step(); err != nil {
				return err
			}
			exchange := u.replica.Exchange
			if s.Step+1 == traineeSteps {
				exchange = u.replica.Settle
			}
			if err := exchange(); err != nil || !dies {
				return err
			}
			return errDeath
		},
		Update: u.replica.Commit}
	return u
}

// trial has three ranks begin, of which the last dies, and two of them and a new one go
// on. It returns those that have finished. With meet none of the two is a step behind.
func trial(t *testing.T, m Method, dies int64, late, meet bool) []*trainee {
	t.Helper()
	met := &meeting{step: dies}
	met.begun.Add(2)
	first, second := memnet.New(3), memnet.New(3)
	all := make([]*trainee, 4)
	errs := make([]error, 4)
	var wg sync.WaitGroup
	for id := range all {
		all[id] = newTrainee(t, m, id)
		if meet && id < 3 {
			all[id].meet = met
		}
		var mine worlds
		switch id {
		case 0, 1:
			mine = worlds{first[id], second[id]}
		case 2:
			mine = worlds{first[id]}
			all[id].dies, all[id].late = dies, late
		case 3:
			mine = worlds{second[2]}
		}
		wg.Go(func() { errs[id] = all[id].elastic.Run(t.Context(), &mine) })
	}
	wg.Wait()
	for id, err := range errs {
		if id == 2 && !errors.Is(err, errDeath) || id != 2 && err != nil {
			t.Fatalf("%+v, death in step %d: rank %d: %v", m, dies, id, err)
		}
	}
	return []*trainee{all[0], all[1], all[3]}
}

// A rank dies in any step, before it has sent anything or after all of it; the others go
// on with a new one, and end with one state and one model.
func TestWorldsChange(t *testing.T) {
	for _, m := range []Method{
		LocalSGD{Every: 3}, DiLoCo{Every: 6, Delay: 4, Codec: compress.Int8(16)}, StreamingDiLoCo{DiLoCo{Every: 6, Delay: 2}, 3},
		SMA{}, PairAveraging{Every: 2},
	} {
		for dies := int64(1); dies < 14; dies += 4 {
			for _, late := range []bool{false, true} {
				var models, states []string
				for _, u := range trial(t, m, dies, late, false) {
					models, states = append(models, hash(t, u.params())), append(states, hash(t, u.replica.State()))
					if u.elastic.State.Step != traineeSteps || u.replica.counter[0] != traineeSteps {
						t.Errorf("%T: ended at %v, counter %v", m, u.elastic.State.Progress, u.replica.counter)
					}
				}
				same(t, "models", models)
				same(t, "states", states)
			}
		}
	}
}

// In the middle of a round, survivors go on from their models and who is new from the
// anchor; pairs begin with one model.
func TestWhatWorldsBeginWith(t *testing.T) {
	const dies = 8 // after steps 3 and 6 have ended rounds
	all := trial(t, LocalSGD{Every: 3}, dies, false, true)
	if all[0].begins[0] != all[1].begins[0] {
		t.Error("the first world has begun with two models")
	}
	own := all[2].begins[0] // of who is new
	for _, u := range all[:2] {
		if u.begins[1] == own || u.begins[1] == u.begins[0] {
			t.Error("a survivor has begun at the anchor: it has lost what it had learnt")
		}
	}
	if all[0].begins[1] == all[1].begins[1] || own == all[0].begins[0] {
		t.Errorf("they have begun with %.8s, %.8s and %.8s", all[0].begins[1], all[1].begins[1], own)
	}
	var begun []string
	for _, u := range trial(t, PairAveraging{}, dies, false, true) {
		begun = append(begun, u.begins[len(u.begins)-1])
	}
	same(t, "pairs begin", begun)
}

// What has arrived in a step that did not count is forgotten in the next world: the anchor
// stays until the next round is due there.
func TestArrivalThatDidNotCount(t *testing.T) {
	for _, c := range []struct {
		m     Method
		steps int // that count
		meet  func(r *Replica) error
		still int // steps after it that bring nothing
	}{
		{DiLoCo{Every: 4, Delay: 2}, 5, (*Replica).Exchange, 4},
		{StreamingDiLoCo{DiLoCo{Every: 6, Delay: 1}, 2}, 3, (*Replica).Exchange, 3},
		{LocalSGD{Every: 4}, 2, (*Replica).Settle, 1},
		{PairAveraging{Every: 4, Delay: 2}, 5, (*Replica).Exchange, 4},
	} {
		replicas := make([]*Replica, 2)
		pupils := make([]*pupil, 2)
		noErrors(t, onEach(memnet.New(2), func(g *ops.Group) error {
			u := newPupil(tensor.Float64, g.Rank())
			r, err := New(c.m, u.params())
			replicas[g.Rank()], pupils[g.Rank()] = r, u
			if err := errors.Join(err, r.Begin(t.Context(), g)); err != nil {
				return err
			}
			for range c.steps {
				elements[float64](u.b.Value)[g.Rank()]++
				if err := r.Step(); err != nil {
					return err
				}
			}
			return c.meet(r) // and no Commit, as something else has failed
		}))
		noErrors(t, onEach(memnet.New(2), func(g *ops.Group) error {
			r, u := replicas[g.Rank()], pupils[g.Rank()]
			if err := r.Begin(t.Context(), g); err != nil {
				return err
			}
			anchor, model := hash(t, r.anchors), hash(t, u.params())
			for k := range c.still {
				if err := r.Step(); err != nil {
					return err
				}
				if hash(t, r.anchors) != anchor || hash(t, u.params()) != model || r.Settled() {
					t.Errorf("%+v: rank %d has moved in step %d of the second world", c.m, g.Rank(), k+1)
				}
			}
			return nil
		}))
	}
}

// A State resumes in another process, with other ranks: after a round as if nothing had
// been; within one, at its beginning.
func TestResume(t *testing.T) {
	run := func(stop, steps int) []float64 {
		var kept []*trainer.Param
		var end []float64
		for _, n := range []int{stop, steps - stop} {
			noErrors(t, onEach(memnet.New(2), func(g *ops.Group) error {
				u := newPupil(tensor.Float64, g.Rank())
				r, err := New(DiLoCo{Every: 5}, u.params())
				if err != nil {
					return err
				}
				sgd, err := trainer.NewSGD(u.params(), trainer.SGDConfig{LR: innerRate})
				if kept != nil && err == nil {
					err = trainer.LoadState(r.State(), kept)
				}
				if err := errors.Join(err, r.Begin(t.Context(), g)); err != nil {
					return err
				}
				for range n {
					u.step()
					if err := errors.Join(sgd.Step(), r.Step()); err != nil {
						return err
					}
				}
				if err := g.Barrier(t.Context()).Wait(); err != nil { // kept is not read any more
					return err
				}
				if g.Rank() == 0 {
					kept, end = slices.Clone(r.State()), flat(r.State()[:2])
				}
				return nil
			}))
		}
		return end
	}
	u := newPupil(tensor.Float64, 0)
	r, err := New(LocalSGD{}, u.params())
	if err != nil {
		t.Fatal(err)
	}
	elements[float64](r.State()[1].Value)[2] = 5
	if err := r.Rewind(); err != nil || elements[float64](u.b.Value)[2] != 5 {
		t.Errorf("rewound to %v: %v", u.b.Value, err)
	}
	if d := apart(run(10, 20), run(0, 20)); d != 0 {
		t.Errorf("a run that was stopped between two rounds is %g off one that was not", d)
	}
	if d := apart(run(12, 20), run(0, 20)); d == 0 || d > 0.5 {
		t.Errorf("one that was stopped within a round is %g off", d)
	}
}

// A warm-up has optimisers that a new rank lacks.
func TestWarmUpIsOneWorlds(t *testing.T) {
	var replicas [2]*Replica
	noErrors(t, onEach(memnet.New(2), func(g *ops.Group) (err error) {
		r, err := New(PostLocalSGD{Warmup: 5}, newPupil(tensor.Float32, 0).params())
		if err == nil {
			err = errors.Join(r.Begin(t.Context(), g), r.Step())
		}
		replicas[g.Rank()] = r
		return err
	}))
	for rank, err := range onEach(memnet.New(2), func(g *ops.Group) error { return replicas[g.Rank()].Begin(t.Context(), g) }) {
		if err == nil || !strings.Contains(err.Error(), "warm-up of 5") {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}
