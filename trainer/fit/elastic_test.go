package fit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"peermesh/testnet/memnet"
	"peermesh/trainer"
	"peermesh/trainer/local"
)

var errNoMore = errors.New("there are no more worlds")

// worlds are those of one rank, in order.
type worlds struct {
	all    []*memnet.World
	guests func() error // asked for newcomers; nil: there are none
}

type guestWorld struct {
	*memnet.World
	guests func() error
}

func (w guestWorld) Newcomers() error {
	if w.guests == nil {
		return nil
	}
	return w.guests()
}

func (guestWorld) Carried() {}

func (guestWorld) Advanced() {}

func (w *worlds) Next(context.Context) (trainer.World, error) {
	if len(w.all) == 0 {
		return nil, errNoMore
	}
	next := guestWorld{w.all[0], w.guests}
	w.all = w.all[1:]
	return next, nil
}

// counted is data that counts how often each sample is used in a step that counts.
type counted struct {
	Base
	samples Samples[[]float64]
	step    []int // of this rank
	used    map[int]int
}

func newCounted(tr *Trainer[[]float64]) *counted {
	c := &counted{used: make(map[int]int)}
	c.samples = tr.Train.(Samples[[]float64])
	load := c.samples.Load
	c.samples.Load = func(ctx context.Context, indices []int) ([]float64, error) {
		c.step = append(c.step, indices...)
		return load(ctx, indices)
	}
	tr.Train = c.samples
	return c
}

func (c *counted) StepEnd(context.Context, *Run) error {
	for _, i := range c.step {
		c.used[i]++
	}
	c.step = nil
	return nil
}
func (c *counted) WorldStart(context.Context, *Run) error { // what was loaded for a step that has not been
	c.step = nil
	return nil
}

// Three ranks train, one dies in the second epoch at any of its hooks, and the two that
// are left finish the run that one rank would have had: no sample is lost or counted
// twice, and what callbacks remember is as it should be.
func TestPeerDies(t *testing.T) {
	for _, dies := range []string{"model", "update start", "step end", "validation end", "epoch end"} {
		for _, stage := range []int{0, 2} {
			models, errs, memories := lives(t, dies, stage, 9)
			if errs[1] == nil || !strings.Contains(errs[1].Error(), "the plug was pulled") {
				t.Errorf("%s: the dead one returns %v", dies, errs[1])
			}
			if stage == 2 {
				for _, rank := range []int{0, 2} {
					if errs[rank] == nil || !strings.Contains(errs[rank].Error(), "resume from a checkpoint") {
						t.Errorf("%s: with ZeRO rank %d returns %v", dies, rank, errs[rank])
					}
				}
				continue
			}
			none(t, []error{errs[0], errs[2]})
			alone := newWave()
			want := byHand(t, basic(alone), alone)
			near(t, dies, same(t, []*wave{models[0], models[2]}), want, 1e-12)
			if memories[0] != 3 || memories[2] != 3 {
				t.Errorf("%s: %v validations are remembered", dies, memories)
			}
		}
	}
}

// Whatever step a rank dies after, the others' run is the same.
func TestPeerDiesAtAnyStep(t *testing.T) {
	alone := newWave()
	want := byHand(t, basic(alone), alone)
	for step := int64(1); step < 21; step++ {
		for _, dies := range []string{"step end", "update start"} {
			models, errs, memories := lives(t, dies, 0, step)
			none(t, []error{errs[0], errs[2]})
			near(t, fmt.Sprint(dies, " ", step), same(t, []*wave{models[0], models[2]}), want, 1e-12)
			if memories[0] != 3 || memories[2] != 3 {
				t.Errorf("%s %d: %v validations are remembered", dies, step, memories)
			}
		}
	}
}

// lives is a run of three, of whom rank 1 dies after some step.
func lives(t *testing.T, dies string, stage int, step int64) ([]*wave, []error, []float64) {
	return livesWith(t, dies, step, func(tr *Trainer[[]float64]) {
		if stage > 0 {
			tr.ZeRO = &trainer.ZeROConfig{Stage: stage}
		}
	})
}

// livesWith is such a run with what change makes of basic.
func livesWith(t *testing.T, dies string, step int64, change func(tr *Trainer[[]float64])) ([]*wave, []error, []float64) {
	models, errs, memories := make([]*wave, 3), make([]error, 3), make([]float64, 3)
	synctest.Test(t, func(t *testing.T) {
		three, two := memnet.New(3), memnet.New(2)
		all := []*worlds{{all: []*memnet.World{three[0], two[0]}}, {all: three[1:2]}, {all: []*memnet.World{three[2], two[1]}}}
		var wg sync.WaitGroup
		for rank := range all {
			models[rank] = newWave()
			tr := basic(models[rank])
			change(tr)
			memory, death := new(counting), &late{failing: failing{at: "never"}, after: step}
			if rank == 1 {
				death.at, death.err = dies, errors.New("the plug was pulled")
				if dies == "model" {
					tr.Model.(*wave).before = after(int(step), death.err)
				}
			}
			tr.Callbacks = append(tr.Callbacks, memory, death)
			wg.Go(func() {
				errs[rank] = tr.Run(context.Background(), all[rank])
				memories[rank] = memory.memory[0]
			})
		}
		wg.Wait()
	})
	return models, errs, memories
}

// late fails after some steps.
type late struct {
	failing
	after int64
}

func (l *late) when(r *Run, err func() error) error {
	if r.Progress().Step < l.after {
		return nil
	}
	return err()
}

func (l *late) UpdateStart(ctx context.Context, r *Run) error {
	return l.when(r, func() error { return l.failing.UpdateStart(ctx, r) })
}
func (l *late) StepEnd(ctx context.Context, r *Run) error {
	return l.when(r, func() error { return l.failing.StepEnd(ctx, r) })
}
func (l *late) ValidationEnd(ctx context.Context, r *Run) error {
	return l.when(r, func() error { return l.failing.ValidationEnd(ctx, r) })
}
func (l *late) EpochEnd(ctx context.Context, r *Run) error {
	return l.when(r, func() error { return l.failing.EpochEnd(ctx, r) })
}
func (l *late) CheckpointSave(ctx context.Context, r *Run, c *trainer.Checkpoints) error {
	return l.when(r, func() error { return l.failing.CheckpointSave(ctx, r, c) })
}

// A newcomer is let in between two steps, in the middle of an epoch, and each sample is
// still used once an epoch.
func TestNewcomer(t *testing.T) {
	grow := errors.New("somebody waits")
	models, errs := make([]*wave, 3), make([]error, 3)
	used := make([]*counted, 3)
	var starts []int
	synctest.Test(t, func(t *testing.T) {
		two, three := memnet.New(2), memnet.New(3)
		steps := 0
		guests := func() error {
			if steps++; steps > 10 {
				return grow
			}
			return nil
		}
		all := []*worlds{{all: []*memnet.World{two[0], three[0]}, guests: guests}, {all: []*memnet.World{two[1], three[1]}}, {all: three[2:]}}
		var wg sync.WaitGroup
		for rank := range all {
			models[rank] = newWave()
			tr := basic(models[rank])
			used[rank] = newCounted(tr)
			tr.Callbacks = []Callback{used[rank]}
			if rank == 0 {
				tr.Callbacks = append(tr.Callbacks, &sizes{to: &starts, settle: func() { steps = -1 << 40 }})
			} else {
				tr.Callbacks = append(tr.Callbacks, &sizes{to: new([]int)})
			}
			wg.Go(func() { errs[rank] = tr.Run(context.Background(), all[rank]) })
		}
		wg.Wait()
	})
	none(t, errs)
	if !slices.Equal(starts, []int{2, 3}) {
		t.Errorf("worlds of %v", starts)
	}
	alone := newWave()
	near(t, "newcomer", same(t, models), byHand(t, basic(alone), alone), 1e-12)
	for i := range 50 {
		if n := used[0].used[i] + used[1].used[i] + used[2].used[i]; n != 3 {
			t.Errorf("sample %d is used %d times in 3 epochs", i, n)
		}
	}
}

// sizes writes down the worlds.
type sizes struct {
	Base
	to     *[]int
	settle func()
}

func (s *sizes) WorldStart(_ context.Context, r *Run) error {
	*s.to = append(*s.to, r.Size())
	if r.Size() == 3 && s.settle != nil {
		s.settle()
	}
	return nil
}

// With ZeRO nobody is let in: their coming would be the run's end.
func TestNobodyJoinsZeRO(t *testing.T) {
	none(t, ranks(t, 2, func(rank int, w *memnet.World) error {
		tr := basic(newWave())
		tr.ZeRO = &trainer.ZeROConfig{}
		return tr.Run(context.Background(), &worlds{all: []*memnet.World{w}, guests: func() error { return errNoMore }})
	}))
}

// Where ranks step on their own, those that are left when one dies go on from what they
// have, finish with one model, and what they remember counts once.
func TestPeerDiesApart(t *testing.T) {
	for _, dies := range []string{"model", "update start", "step end", "validation end", "epoch end"} {
		models, errs, memories := livesWith(t, dies, 9, func(tr *Trainer[[]float64]) { tr.Local = local.LocalSGD{Every: 3} })
		if errs[1] == nil || !strings.Contains(errs[1].Error(), "the plug was pulled") {
			t.Errorf("%s: the dead one returns %v", dies, errs[1])
		}
		none(t, []error{errs[0], errs[2]})
		same(t, []*wave{models[0], models[2]})
		if memories[0] != 3 || memories[2] != 3 {
			t.Errorf("%s: %v validations are remembered", dies, memories)
		}
	}
}
