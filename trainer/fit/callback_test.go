package fit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"peermesh/testnet/memnet"
	"peermesh/trainer"
)

// A diary writes down every hook.
type diary struct {
	Callback
	entries *[]string
}

func (d diary) add(what string) error {
	*d.entries = append(*d.entries, what)
	return nil
}

func (d diary) FitStart(_ context.Context, r *Run) error   { return d.add("fit start") }
func (d diary) FitEnd(_ context.Context, r *Run) error     { return d.add("fit end") }
func (d diary) WorldStart(_ context.Context, r *Run) error { return d.add("world start") }
func (d diary) EpochStart(_ context.Context, r *Run) error { return d.add("epoch start") }
func (d diary) EpochEnd(_ context.Context, r *Run) error {
	return d.add(fmt.Sprint("epoch end ", r.Progress().Epoch))
}
func (d diary) StepStart(_ context.Context, r *Run) error { return d.add("step start") }
func (d diary) StepEnd(_ context.Context, r *Run) error {
	return d.add(fmt.Sprint("step end ", r.Progress().Step))
}
func (d diary) BackwardStart(_ context.Context, r *Run) error   { return d.add("backward start") }
func (d diary) BackwardEnd(_ context.Context, r *Run) error     { return d.add("backward end") }
func (d diary) UpdateStart(_ context.Context, r *Run) error     { return d.add("update start") }
func (d diary) ValidationStart(_ context.Context, r *Run) error { return d.add("validation start") }
func (d diary) ValidationEnd(_ context.Context, r *Run) error {
	_, ok := r.Metric("val/loss")
	return d.add(fmt.Sprint("validation end ", ok))
}
func (d diary) CheckpointSave(context.Context, *Run, *trainer.Checkpoints) error {
	return d.add("checkpoint save")
}
func (d diary) CheckpointLoad(context.Context, *Run, *trainer.Checkpoints) error {
	return d.add("checkpoint load")
}
func (d diary) Exception(context.Context, *Run, error) error { return d.add("exception") }

const story = `fit start
world start
epoch start
step start
backward start
backward end
backward start
backward end
update start
step end 1
step start
backward start
backward end
update start
step end 2
validation start
validation end true
epoch end 0
checkpoint save
fit end
`

// The hooks come in their order, on the ranks that the callback says and on no others.
func TestHooks(t *testing.T) {
	dir := t.TempDir()
	said := make([][2][]string, 3)
	run := func(change func(tr *Trainer[[]float64])) []error {
		_, errs := fits(t, 3, func(rank int, tr *Trainer[[]float64]) {
			tr.Train = points(9, trainer.ElasticConfig{Batch: 1}) // three batches a rank, in steps of two
			tr.Epochs, tr.Accumulate = 1, 2
			tr.Checkpoints = &trainer.Checkpoints{Dir: dir}
			said[rank] = [2][]string{}
			tr.Callbacks = []Callback{diary{Base{}, &said[rank][0]}, diary{RankZero{}, &said[rank][1]}}
			change(tr)
		})
		return errs
	}
	none(t, run(func(*Trainer[[]float64]) {}))
	for rank, s := range said {
		if got := strings.Join(s[0], "\n") + "\n"; got != story {
			t.Errorf("rank %d:\n%s", rank, got)
		}
		if rank == 0 && !slices.Equal(s[0], s[1]) || rank > 0 && len(s[1]) > 0 {
			t.Errorf("on rank %d what is for rank 0 heard %d hooks", rank, len(s[1]))
		}
	}

	none(t, run(func(tr *Trainer[[]float64]) { tr.Resume, tr.Epochs = true, 2 }))
	// The checkpoint is of the epoch's end, which comes once more.
	want := []string{"checkpoint load", "fit start", "world start", "validation start", "validation end true", "epoch end 0", "checkpoint save", "epoch start"}
	if !slices.Equal(said[2][0][:len(want)], want) {
		t.Errorf("resumed: %q", said[2][0])
	}

	errs := run(func(tr *Trainer[[]float64]) { tr.Model.(*wave).before = after(1, errBroken) })
	for rank, err := range errs {
		if s := said[rank][0]; err == nil || s[len(s)-1] != "exception" {
			t.Errorf("rank %d: %v after %q", rank, err, s)
		}
	}
}

var errBroken = errors.New("broken")

// keepRun is for a look at the run when it is over.
type keepRun struct {
	Base
	to **Run
}

func (k *keepRun) FitEnd(_ context.Context, r *Run) error {
	*k.to = r
	return nil
}

// counting counts validations, in a memory.
type counting struct {
	Base
	memory [1]float64
}

func (c *counting) Memory() (string, []float64) { return "counting", c.memory[:] }
func (c *counting) ValidationEnd(context.Context, *Run) error {
	c.memory[0]++
	return nil
}

// A run that resumes, in the middle of an epoch or at its end and with any number of
// ranks, with ZeRO or without, is the run that did not stop: in parameters, in the
// schedule, and in what callbacks remember.
func TestResume(t *testing.T) {
	configure := func(tr *Trainer[[]float64], dir string, zero bool) *counting {
		c := new(counting)
		tr.Callbacks = []Callback{c}
		tr.Curve = trainer.CosineAnnealing{Steps: 21}
		tr.Plateau = &trainer.PlateauConfig{Patience: 1}
		tr.Scaler = &trainer.ScalerConfig{Interval: 4}
		if zero {
			tr.ZeRO = &trainer.ZeROConfig{}
		}
		tr.Checkpoints = &trainer.Checkpoints{Dir: dir}
		return c
	}
	for _, c := range []struct {
		before, after int
		every         int64
		zero          bool
	}{{1, 1, 5, false}, {2, 3, 5, false}, {3, 2, 0, false}, {2, 3, 5, true}} {
		whole, again := make([]*counting, c.before), make([]*counting, c.after)
		models, errs := fits(t, c.before, func(rank int, tr *Trainer[[]float64]) {
			whole[rank] = configure(tr, t.TempDir(), c.zero)
			tr.CheckpointEvery = c.every
		})
		none(t, errs)
		want := same(t, models)

		dir := t.TempDir()
		_, errs = fits(t, c.before, func(rank int, tr *Trainer[[]float64]) {
			configure(tr, dir, c.zero)
			tr.CheckpointEvery = c.every
			tr.Model.(*wave).before = after(12, errBroken) // in the second epoch
		})
		if errs[0] == nil {
			t.Fatal("it was to break")
		}
		models, errs = fits(t, c.after, func(rank int, tr *Trainer[[]float64]) {
			again[rank] = configure(tr, dir, c.zero && c.after == c.before) // else without
			tr.CheckpointEvery, tr.Resume = c.every, true
		})
		none(t, errs)
		near(t, fmt.Sprintf("%+v", c), same(t, models), want, 1e-12)
		for rank, a := range again {
			if a.memory != whole[0].memory {
				t.Errorf("%+v: rank %d remembers %v validations, want %v", c, rank, a.memory, whole[0].memory)
			}
		}
	}
}

// A checkpoint that is there before the run has begun with nothing to resume from.
func TestResumeFromNothing(t *testing.T) {
	models, errs := fits(t, 2, func(_ int, tr *Trainer[[]float64]) {
		tr.Checkpoints, tr.Resume = &trainer.Checkpoints{Dir: t.TempDir()}, true
	})
	none(t, errs)
	same(t, models)
}

// Sanity, FastRun, Overfit and the limits take the batches that they say.
func TestShortRuns(t *testing.T) {
	for name, c := range map[string]struct {
		change             func(tr *Trainer[[]float64])
		calls, evaluations int
		steps              int64
	}{
		"whole":     {func(*Trainer[[]float64]) {}, 21, 2 + 3*7, 21},
		"no sanity": {func(tr *Trainer[[]float64]) { tr.Sanity = -1 }, 21, 3 * 7, 21},
		"sanity":    {func(tr *Trainer[[]float64]) { tr.Sanity, tr.Steps = 5, 1 }, 1, 5 + 7, 1},
		"fast": {func(tr *Trainer[[]float64]) {
			tr.FastRun, tr.Checkpoints = true, &trainer.Checkpoints{Dir: "/dev/null/x"}
		}, 1, 1, 1},
		"limited":    {func(tr *Trainer[[]float64]) { tr.LimitTrain, tr.LimitValid = 2, 3 }, 6, 2 + 3*3, 6},
		"overfit":    {func(tr *Trainer[[]float64]) { tr.Overfit = 2 }, 6, 2 + 3*2, 6},
		"every 5":    {func(tr *Trainer[[]float64]) { tr.ValidEvery, tr.Sanity = 5, -1 }, 21, 5 * 7, 21}, // 5, 10, 15, 20 and the end
		"two epochs": {func(tr *Trainer[[]float64]) { tr.ValidEpochs, tr.Sanity = 2, -1 }, 21, 2 * 7, 21},
		"steps":      {func(tr *Trainer[[]float64]) { tr.Epochs, tr.Steps, tr.Sanity = 0, 9, -1 }, 9, 2 * 7, 9},
	} {
		var r *Run
		var m *wave
		evaluations := 0
		_, errs := fits(t, 1, func(_ int, tr *Trainer[[]float64]) {
			m = tr.Model.(*wave)
			evaluate := tr.Evaluate
			tr.Evaluate = func(ctx context.Context, b []float64) (Metrics, error) {
				evaluations++
				return evaluate(ctx, b)
			}
			tr.Callbacks = []Callback{&keepRun{to: &r}, &EarlyStopping{Patience: 100}, &BestCheckpoints{Dir: t.TempDir()}}
			c.change(tr)
		})
		none(t, errs)
		if m.calls != c.calls || evaluations != c.evaluations || r.Progress().Step != c.steps {
			t.Errorf("%s: %d batches, %d evaluations, %v", name, m.calls, evaluations, r.Progress())
		}
	}
}

// The end of the context ends all ranks.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	errs := ranks(t, 2, func(rank int, w *memnet.World) error {
		tr := basic(newWave())
		tr.Epochs = 1 << 40
		tr.Model.(*wave).before = func(call int) error {
			if rank == 0 && call == 5 {
				cancel(errBroken)
			}
			return nil
		}
		return tr.Fit(map[int]context.Context{0: ctx, 1: context.Background()}[rank], w)
	})
	for rank, err := range errs {
		if !errors.Is(err, errBroken) && (err == nil || !strings.Contains(err.Error(), "broken")) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}
