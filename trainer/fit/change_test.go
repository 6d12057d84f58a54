package fit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"peermesh/testnet/memnet"
	"peermesh/trainer"
)

// lifetimes runs processes, each in worlds of its own, with what change makes of basic.
func lifetimes(t *testing.T, begin func() []*worlds, change func(id int, tr *Trainer[[]float64])) (models []*wave, errs []error) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		all := begin()
		models, errs = make([]*wave, len(all)), make([]error, len(all))
		var wg sync.WaitGroup
		for id, mine := range all {
			models[id] = newWave()
			tr := basic(models[id])
			change(id, tr)
			wg.Go(func() { errs[id] = tr.Run(context.Background(), mine) })
		}
		wg.Wait()
	})
	return models, errs
}

// replaced is two ranks, of whom the second dies, and a third process that takes its place.
func replaced() []*worlds {
	first, second := memnet.New(2), memnet.New(2)
	return []*worlds{{all: []*memnet.World{first[0], second[0]}}, {all: first[1:]}, {all: second[1:]}}
}

// joined is two ranks, and a third that is let in after so many steps of the first.
func joined(after int) func() []*worlds {
	return func() []*worlds {
		two, three, steps := memnet.New(2), memnet.New(3), 0
		guests := func() error {
			if steps++; steps == after {
				return errors.New("somebody waits")
			}
			return nil
		}
		return []*worlds{{all: []*memnet.World{two[0], three[0]}, guests: guests}, {all: []*memnet.World{two[1], three[1]}}, {all: three[2:]}}
	}
}

// Who comes before anybody has taken a step checks the code together with the others, who
// have done so before.
func TestReplacedBeforeTheFirstStep(t *testing.T) {
	models, errs := lifetimes(t, replaced, func(id int, tr *Trainer[[]float64]) {
		if id == 1 {
			tr.Model.(*wave).before = after(1, errBroken)
		}
	})
	none(t, []error{errs[0], errs[2]})
	alone := newWave()
	near(t, "replaced", same(t, []*wave{models[0], models[2]}), byHand(t, basic(alone), alone), 1e-12)
}

// Whenever somebody is let in, the moment of a validation too, and the end of an epoch, all
// ranks are of one mind about what has been validated and about the rates of learning.
func TestJoined(t *testing.T) {
	for _, step := range []int{1, 3, 6, 7, 14, 20, 21} {
		for _, every := range []int64{0, 3, 7} {
			what := fmt.Sprintf("validated every %d, let in after step %d", every, step)
			seen, runs := make([]*counting, 3), make([]*Run, 3)
			models, errs := lifetimes(t, joined(step), func(id int, tr *Trainer[[]float64]) {
				seen[id] = new(counting)
				tr.ValidEvery = every
				tr.Plateau = &trainer.PlateauConfig{Patience: -1, Factor: 0.5, Max: true} // a loss that falls is none that grows
				tr.Callbacks = []Callback{seen[id], &keepRun{to: &runs[id]}}
			})
			none(t, errs)
			same(t, models)
			for id, c := range seen {
				if want := map[int64]float64{0: 3, 3: 7, 7: 3}[every]; c.memory[0] != want {
					t.Errorf("%s: rank %d remembers %v validations, want %v", what, id, c.memory, want)
				}
				if got, want := runs[id].Optimizer().Rates(), runs[0].Optimizer().Rates(); !slices.Equal(got, want) || got[0] == 0.05 {
					t.Errorf("%s: rank %d has rates of %v, rank 0 %v", what, id, got, want)
				}
			}
		}
	}
}

// A validation between two steps that a death has cut off, or whose outcome nobody has kept,
// comes again: what is remembered of it counts once.
func TestPeerDiesAboutAValidation(t *testing.T) {
	for _, step := range []int64{4, 5, 6, 7, 14, 15, 20} {
		for _, dies := range []string{"model", "update start", "step end", "validation end", "epoch end"} {
			_, errs, memories := livesWith(t, dies, step, func(tr *Trainer[[]float64]) { tr.ValidEvery = 5 })
			none(t, []error{errs[0], errs[2]})
			if memories[0] != 5 || memories[2] != 5 {
				t.Errorf("%s %d: %v validations are remembered, want 5", dies, step, memories)
			}
		}
	}
}

// The end that a number of steps sets is an end for those that are left, with its validation,
// its hook and its checkpoint, even where a rank dies in the midst of that.
func TestPeerDiesAtTheEnd(t *testing.T) {
	for _, dies := range []string{"model", "step end", "validation end", "epoch end", "checkpoint save"} {
		said := make([][]string, 3)
		dir, id := t.TempDir(), 0
		_, errs, memories := livesWith(t, dies, 9, func(tr *Trainer[[]float64]) {
			tr.Steps = 9
			tr.Checkpoints = &trainer.Checkpoints{Dir: dir}
			tr.Loggers = []Logger{&record{}}
			tr.Callbacks = []Callback{diary{Base{}, &said[id]}}
			id++
		})
		none(t, []error{errs[0], errs[2]})
		for _, rank := range []int{0, 2} {
			end, want := said[rank], []string{"validation end true", "epoch end 1", "checkpoint save", "fit end"}
			if dies == "checkpoint save" { // the others have saved as well, and one may hear of the end by the other alone
				end, want = slices.DeleteFunc(end, func(s string) bool { return s == want[2] }), slices.Delete(want, 2, 3)
			}
			if end = end[max(0, len(end)-len(want)):]; !slices.Equal(end, want) {
				t.Errorf("%s: rank %d ends with %q", dies, rank, end)
			}
			if memories[rank] != 2 {
				t.Errorf("%s: rank %d remembers %v validations", dies, rank, memories[rank])
			}
		}
		if at, err := (&trainer.Checkpoints{Dir: dir}).Latest(); err != nil || at.Step != 9 {
			t.Errorf("%s: the last checkpoint is of %v, %v", dies, at, err)
		}
	}
}
