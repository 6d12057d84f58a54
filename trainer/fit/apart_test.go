package fit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"peermesh/ops"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
	"peermesh/trainer/compress"
	"peermesh/trainer/local"
)

var methods = map[string]local.Method{
	"local sgd":      local.LocalSGD{Every: 3},
	"every step":     local.LocalSGD{Every: 1},
	"post-local sgd": local.PostLocalSGD{Warmup: 5, Every: 4},
	"diloco":         local.DiLoCo{Every: 4, Momentum: 0.5},
	"int8, late":     local.DiLoCo{Every: 5, Codec: compress.Int8(0), Delay: 2},
	"streaming":      local.StreamingDiLoCo{DiLoCo: local.DiLoCo{Every: 6}, Parts: 3},
	"sma":            local.SMA{Every: 2},
	"pairs":          local.PairAveraging{Every: 2, Seed: 3},
}

// direct is the run of basic by a loop over a Replica, which comes to one model in the
// last step of each epoch, when the model is validated.
func direct(g *ops.Group, m *wave, method local.Method, tr *Trainer[[]float64]) error {
	ctx := context.Background()
	opt, err := tr.Optimizer(m.params)
	if err != nil {
		return err
	}
	r, err := local.New(method, m.params)
	if err != nil {
		return err
	}
	if err := r.Begin(ctx, g); err != nil {
		return err
	}
	ddp, err := trainer.NewDDP(ctx, g, m.params, trainer.DDPConfig{Synced: true})
	if err != nil {
		return err
	}
	for epoch := range tr.Epochs {
		seen := 0
		for b, err := range tr.Train.Batches(ctx, Place{Epoch: epoch, Rank: g.Rank(), Size: g.Size()}) {
			if err != nil {
				return err
			}
			seen += b.Total
			if err := directStep(ctx, m, opt, r, ddp, b, seen == tr.Train.Len()); err != nil {
				return err
			}
		}
	}
	return nil
}

func directStep(ctx context.Context, m *wave, opt trainer.Optimizer, r *local.Replica, ddp *trainer.DDP, b Batch[[]float64], last bool) error {
	ready := func(int) {}
	if r.Warm() {
		ready = ddp.Ready
		ddp.Weigh(float64(b.Samples) / float64(b.Total))
	}
	_, err := m.ForwardBackward(ctx, b.Items, ready)
	if err == nil && r.Warm() {
		err = ddp.Wait()
	}
	if err == nil && (b.Samples > 0 || r.Warm()) { // who has no samples has nothing to step by
		err = opt.Step()
	}
	if err == nil && last {
		return r.Finish()
	}
	return errors.Join(err, r.Step())
}

// A run with Local is that of a loop over a Replica, to the last bit, with every method.
func TestLocal(t *testing.T) {
	for name, method := range methods {
		for n := 1; n <= 4; n += 3 {
			t.Run(fmt.Sprintf("%s, %d ranks", name, n), func(t *testing.T) {
				by := make([]*wave, n)
				errs := ranks(t, n, func(rank int, w *memnet.World) error {
					by[rank] = newWave()
					err := direct(ops.NewGroup(w, ops.Config{}), by[rank], method, basic(by[rank]))
					if err != nil {
						w.End(err)
					}
					return err
				})
				none(t, errs)
				models, errs := fits(t, n, func(_ int, tr *Trainer[[]float64]) { tr.Local = method })
				none(t, errs)
				if got, want := same(t, models), same(t, by); !slices.Equal(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
			})
		}
	}
}

// With SGD a step each is plain averaging where all ranks have as many samples, and so is
// it with accumulation, which takes the same samples in more batches.
func TestLocalEveryStepIsDDP(t *testing.T) {
	for _, accumulate := range []int{1, 2} {
		change := func(tr *Trainer[[]float64]) {
			tr.Optimizer = func(p []*trainer.Param) (trainer.Optimizer, error) {
				return trainer.NewSGD(p, trainer.SGDConfig{LR: 0.05})
			}
			tr.Train = points(48, trainer.ElasticConfig{Shuffle: true, Global: 8 / accumulate})
			tr.Accumulate = accumulate
		}
		plain, errs := fits(t, 4, func(_ int, tr *Trainer[[]float64]) { change(tr) })
		none(t, errs)
		apart, errs := fits(t, 4, func(_ int, tr *Trainer[[]float64]) {
			change(tr)
			tr.Local = local.LocalSGD{Every: 1}
		})
		none(t, errs)
		near(t, "every step", same(t, apart), same(t, plain), 1e-12)
	}
}

// Losses come with the models, of all steps since the last, and the epoch's is of all its
// samples. Every validation, and every checkpoint, is of one model.
func TestLocalLooks(t *testing.T) {
	r := &record{}
	dir := t.TempDir()
	models, errs := fits(t, 2, func(rank int, tr *Trainer[[]float64]) {
		tr.Local = local.LocalSGD{Every: 4}
		tr.LogEvery = 1
		tr.Checkpoints = &trainer.Checkpoints{Dir: dir}
		if rank == 0 {
			tr.Loggers = []Logger{r}
		}
	})
	none(t, errs)
	for _, step := range []int64{7, 14, 21} {
		for _, name := range []string{EpochLoss, "val/loss"} {
			if v := r.value(step, name); !(v > 0) {
				t.Errorf("step %d has %s of %v", step, name, v)
			}
		}
	}
	if early, late := r.value(7, "val/loss"), r.value(21, "val/loss"); !(late < early/2) {
		t.Errorf("validation: %v after an epoch, %v after three", early, late)
	}
	want := same(t, models)
	again, errs := fits(t, 3, func(_ int, tr *Trainer[[]float64]) { // from the end: nothing is left to do
		tr.Local = local.LocalSGD{Every: 4}
		tr.Checkpoints, tr.Resume = &trainer.Checkpoints{Dir: dir}, true
	})
	none(t, errs)
	if got := same(t, again); !slices.Equal(got, want) {
		t.Errorf("the checkpoint has %v, want %v", got, want)
	}
}

// An epoch in which the models never meet has no loss to log, rather than one of no number.
func TestLocalLogsWhatIsKnown(t *testing.T) {
	r := &record{}
	_, errs := fits(t, 2, func(rank int, tr *Trainer[[]float64]) {
		tr.Local, tr.Valid, tr.Evaluate, tr.LogEvery = local.LocalSGD{Every: 10}, nil, nil, 1
		if rank == 0 {
			tr.Loggers = []Logger{r}
		}
	})
	none(t, errs)
	for i, m := range r.all {
		for name, v := range m {
			if v != v {
				t.Errorf("step %d has %s of %v", r.steps[i], name, v)
			}
		}
	}
	if v := r.value(7, EpochLoss); v == v {
		t.Errorf("after an epoch apart it is %v", v)
	}
	if v := r.value(14, EpochLoss); !(v > 0) {
		t.Errorf("after two, of which models have met in one, it is %v", v)
	}
}

// One rank's wish ends all of them with one model, soon after the models next meet.
func TestLocalStops(t *testing.T) {
	for _, at := range []string{"step start", "step end", "validation", "epoch"} {
		ends := make([]*Run, 3)
		models, errs := fits(t, 3, func(rank int, tr *Trainer[[]float64]) {
			tr.Local = local.LocalSGD{Every: 3}
			s := &stopper{at: at, step: 1 << 40}
			if rank == 2 {
				s.step = 5
			}
			tr.Callbacks = []Callback{s, &keepRun{to: &ends[rank]}}
		})
		none(t, errs)
		same(t, models)
		for rank, r := range ends {
			if step := r.Progress().Step; step != ends[0].Progress().Step || step < 5 || step > 9 || r.Stopped() == "" {
				t.Errorf("%s: rank %d ended at step %d: %q", at, rank, step, r.Stopped())
			}
		}
	}
}

// Limits and tests of the code know where their epochs end, and data that does not is an
// error rather than a result that no two ranks share.
func TestLocalKnowsTheEnd(t *testing.T) {
	for name, change := range map[string]func(tr *Trainer[[]float64]){
		"limit":    func(tr *Trainer[[]float64]) { tr.LimitTrain = 3 },
		"fast run": func(tr *Trainer[[]float64]) { tr.FastRun = true },
		"overfit":  func(tr *Trainer[[]float64]) { tr.Overfit = 2 },
		"steps":    func(tr *Trainer[[]float64]) { tr.Epochs, tr.Steps, tr.Train = 0, 5, endless{tr.Train} },
		"endless":  func(tr *Trainer[[]float64]) { tr.Train = endless{tr.Train} },
	} {
		models, errs := fits(t, 2, func(_ int, tr *Trainer[[]float64]) {
			tr.Local = local.LocalSGD{Every: 4}
			change(tr)
		})
		if name == "endless" {
			for rank, err := range errs {
				if err == nil {
					t.Errorf("%s: rank %d has no error", name, rank)
				}
			}
			continue
		}
		none(t, errs)
		same(t, models)
	}
}

// Running statistics are each rank's own until models become one, then the mean of all. A
// run that resumes goes on with that.
func TestLocalBuffers(t *testing.T) {
	dir := t.TempDir()
	for _, epochs := range []int64{1, 2} {
		means := make([][]float64, 2)
		_, errs := fits(t, 2, func(rank int, tr *Trainer[[]float64]) {
			m := &normed{tr.Model.(*wave), make([]float64, 1)}
			means[rank] = m.mean
			m.before = func(int) error { m.mean[0] += float64(1 + 2*rank); return nil }
			tr.Model, tr.Epochs, tr.Local = m, epochs, local.LocalSGD{Every: 3}
			tr.Checkpoints, tr.Resume = &trainer.Checkpoints{Dir: dir}, true
		})
		none(t, errs)
		for rank, mean := range means { // 7 steps an epoch, of 1 and of 3: a mean of 2
			if mean[0] != float64(2*7*epochs) {
				t.Errorf("after %d epochs, on rank %d: %v", epochs, rank, mean)
			}
		}
	}
}
