package fit

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"peermesh/ops"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
)

// scripted has one validation after the other say what is written.
func scripted(tr *Trainer[[]float64], losses ...float64) {
	n := 0
	tr.Sanity = -1
	tr.Epochs = int64(len(losses))
	tr.Valid = points(1, trainer.ElasticConfig{Batch: 1}) // on rank 0 alone
	tr.Evaluate = func(context.Context, []float64) (Metrics, error) {
		n++
		return Metrics{"loss": losses[n-1]}, nil
	}
}

// Early stopping ends all ranks after as many validations as it should.
func TestEarlyStopping(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		e      EarlyStopping
		losses []float64
		epochs int64
		why    string
	}{
		"improves":   {EarlyStopping{Patience: 1}, []float64{4, 3, 2, 1}, 4, ""},
		"patience 1": {EarlyStopping{Patience: 1}, []float64{4, 3, 3, 1}, 3, "val/loss has not improved on 3 in 1 validations"},
		"the usual":  {EarlyStopping{}, []float64{4, 5, 5, 5, 1}, 4, "not improved on 4 in 3"},
		"recovers":   {EarlyStopping{Patience: 2}, []float64{4, 5, 3, 4, 2}, 5, ""},
		"delta":      {EarlyStopping{Patience: 2, MinDelta: 0.5}, []float64{4, 3.6, 3.55, 1}, 3, "not improved on 4"},
		"grows":      {EarlyStopping{Patience: 1, Max: true}, []float64{1, 2, 1.5, 3}, 3, "not improved on 2"},
		"no number":  {EarlyStopping{}, []float64{3, nan, 1}, 2, "val/loss is NaN, which is not finite, after step 14, in epoch 1; its best was 3"},
		"infinite":   {EarlyStopping{Stop: new(2.), Max: true}, []float64{1, math.Inf(1), 1}, 2, "val/loss is +Inf, which is not finite"},
		"the last":   {EarlyStopping{}, []float64{3, nan}, 2, "val/loss is NaN"},
		"unchecked":  {EarlyStopping{Patience: 2, CheckFinite: new(false)}, []float64{nan, nan, 1}, 2, "not improved on +Inf"},
		"enough":     {EarlyStopping{Stop: new(2.)}, []float64{4, 2, 1}, 2, "good enough at 2"},
		"above":      {EarlyStopping{Stop: new(2.), Max: true}, []float64{1, 3, 1}, 2, "good enough at 2"},
	} {
		runs := make([]*Run, 2)
		_, errs := fits(t, 2, func(rank int, tr *Trainer[[]float64]) {
			e := c.e
			scripted(tr, c.losses...)
			tr.Callbacks = []Callback{&e, &keepRun{to: &runs[rank]}}
		})
		none(t, errs)
		for rank, r := range runs {
			if r.Progress().Epoch != c.epochs || !strings.Contains(r.Stopped(), c.why) || (c.why == "") != (r.Stopped() == "") {
				t.Errorf("%s: rank %d ended at %v: %q", name, rank, r.Progress(), r.Stopped())
			}
		}
	}
	_, errs := fits(t, 2, func(_ int, tr *Trainer[[]float64]) {
		tr.Callbacks = []Callback{&EarlyStopping{Monitor: "val/accuracy"}}
	})
	for rank, err := range errs {
		if err == nil || !strings.Contains(err.Error(), `no metric "val/accuracy"`) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// The best stay, the worst goes, and the last is there; a run that resumes goes on with
// the ranking that there was.
func TestBestCheckpoints(t *testing.T) {
	dir := t.TempDir()
	run := func(resume bool, max bool, losses ...float64) *BestCheckpoints {
		t.Helper()
		best := make([]*BestCheckpoints, 2)
		_, errs := fits(t, 2, func(rank int, tr *Trainer[[]float64]) {
			scripted(tr, losses...)
			best[rank] = &BestCheckpoints{Dir: dir, TopK: 2, Last: true, Max: max}
			tr.Callbacks = []Callback{best[rank]}
			tr.Checkpoints, tr.Resume = &trainer.Checkpoints{Dir: dir + "/all"}, resume
			if resume {
				tr.Checkpoints, tr.Epochs = best[rank].Latest(), 7
			}
		})
		none(t, errs)
		if !slices.Equal(best[0].Ranking(), best[1].Ranking()) {
			t.Errorf("%v, and on rank 1 %v", best[0].Ranking(), best[1].Ranking())
		}
		return best[0]
	}
	is := func(b *BestCheckpoints, last int64, want ...Ranked) {
		t.Helper()
		if got := b.Ranking(); !slices.Equal(got, want) {
			t.Errorf("the best are %v, want %v", got, want)
		}
		list, err := b.Best().List()
		if err != nil || len(list) != len(want) {
			t.Errorf("on disk: %v, %v", list, err)
		}
		for _, c := range list {
			if !slices.ContainsFunc(want, func(w Ranked) bool { return w.Step == c.Step && w.Epoch == c.Epoch }) {
				t.Errorf("%v is on disk", c.Progress)
			}
		}
		if newest, err := b.Latest().Latest(); err != nil || newest.Step != last {
			t.Errorf("the last is %v, %v", newest.Progress, err)
		}
	}
	b := run(false, false, 5, 3, 4, 3, math.NaN())
	is(b, 35, Ranked{3, 14, 1}, Ranked{3, 28, 3})
	// From the last one, whose epoch's end comes once more.
	b = run(true, false, math.NaN(), 9, 2)
	is(b, 49, Ranked{2, 49, 6}, Ranked{3, 14, 1})
	dir = t.TempDir()
	is(run(false, true, 1, 2), 14, Ranked{2, 14, 1}, Ranked{1, 7, 0})

	_, errs := fits(t, 1, func(_ int, tr *Trainer[[]float64]) { tr.Callbacks = []Callback{&BestCheckpoints{}} })
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "want a folder") {
		t.Error(errs[0])
	}
}

// A Timer stops all ranks when the time of one is up.
func TestTimer(t *testing.T) {
	runs := make([]*Run, 2)
	none(t, ranks(t, 2, func(rank int, w *memnet.World) error {
		tr := basic(newWave())
		tr.Epochs = 1000
		tr.Model.(*wave).before = func(int) error { time.Sleep(time.Second); return nil } // virtual
		limit := []time.Duration{time.Hour, 10 * time.Second}[rank]
		tr.Callbacks = []Callback{&Timer{Max: limit}, &keepRun{to: &runs[rank]}}
		return tr.Fit(context.Background(), w)
	}))
	for rank, r := range runs {
		if r.Progress().Step != 11 { // the step that began when it was up is the last
			t.Errorf("rank %d ended at %v", rank, r.Progress())
		}
	}
}

// A run of no time is a mistake, and none of one step.
func TestTimerRefuses(t *testing.T) {
	_, errs := fits(t, 1, func(_ int, tr *Trainer[[]float64]) { tr.Callbacks = []Callback{&Timer{}} })
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "a run of 0s") {
		t.Error(errs[0])
	}
}

// record keeps what it is told.
type record struct {
	steps []int64
	all   []map[string]float64
}

func (r *record) Log(step int64, m map[string]float64) error {
	r.steps, r.all = append(r.steps, step), append(r.all, maps.Clone(m))
	return nil
}

// value is what was logged at a step.
func (r *record) value(step int64, name string) (v float64) {
	v = math.NaN()
	for i, s := range r.steps {
		if got, ok := r.all[i][name]; ok && s == step {
			v = got
		}
	}
	return v
}

// On rank 0 the loggers get the loss, the validation, and what the monitors find.
func TestLogging(t *testing.T) {
	logs := make([]record, 2)
	_, errs := fits(t, 2, func(rank int, tr *Trainer[[]float64]) {
		m := tr.Model.(*wave)
		m.before = func(int) error { time.Sleep(time.Second); return nil }
		tr.LogEvery, tr.Curve, tr.Clip = 2, trainer.StepLR{Every: 2, Gamma: 0.5}, 0.01
		tr.Optimizer = func(p []*trainer.Param) (trainer.Optimizer, error) {
			o, err := trainer.NewSGD(p[:1], trainer.SGDConfig{LR: 0.5, Momentum: 0.9})
			if err == nil {
				err = o.AddParams(p[1:], trainer.SGDConfig{LR: 0.25, Momentum: 0.5})
			}
			return o, err
		}
		tr.Loggers = []Logger{&logs[rank]}
		tr.Callbacks = []Callback{&LearningRateMonitor{Momentum: true}, &GradientNorm{}, &Throughput{}}
	})
	none(t, errs)
	if len(logs[1].steps) > 0 {
		t.Errorf("rank 1 logs %v", logs[1].all)
	}
	l := &logs[0]
	if want := []int64{2, 4, 6, 7, 8, 10, 12, 14, 14, 16, 18, 20, 21}; !slices.Equal(l.steps, want) {
		t.Errorf("logged at %v, want %v", l.steps, want)
	}
	for _, c := range []struct {
		step int64
		name string
		want float64
	}{
		{2, "lr/0", 0.5}, {2, "lr/1", 0.25}, {4, "lr/0", 0.25}, {4, "momentum/0", 0.9}, {4, "momentum/1", 0.5},
		{2, "samples_per_second", 8}, {14, "epoch", 1}, {21, "val/count", 1},
	} {
		if got := l.value(c.step, c.name); got != c.want {
			t.Errorf("step %d has %s %v, want %v", c.step, c.name, got, c.want)
		}
	}
	for _, name := range []string{TrainLoss, "grad_norm", "val/loss", EpochLoss} {
		step := map[bool]int64{true: 2, false: 7}[name == TrainLoss || name == "grad_norm"]
		if v := l.value(step, name); !(v > 0.01) {
			t.Errorf("%s is %v", name, v)
		}
	}
	if first, last := l.value(7, EpochLoss), l.value(21, EpochLoss); last >= first {
		t.Errorf("the epochs' losses are %v and %v", first, last)
	}
}

// The norm is that of all gradients in every mode, and one above the limit stops the run.
func TestGradientNorm(t *testing.T) {
	var first float64
	for i, stage := range []int{0, 1, 2} {
		var log record
		var r *Run
		_, errs := fits(t, 2, func(rank int, tr *Trainer[[]float64]) {
			tr.Scaler, tr.LogEvery = &trainer.ScalerConfig{}, 1
			if stage > 0 {
				tr.ZeRO = &trainer.ZeROConfig{Stage: stage}
			}
			tr.Callbacks = []Callback{&GradientNorm{Limit: 1e-9}}
			if rank == 0 {
				tr.Loggers, tr.Callbacks = []Logger{&log}, append(tr.Callbacks, &keepRun{to: &r})
			} else {
				tr.Callbacks = append(tr.Callbacks, &keepRun{to: new(*Run)})
			}
		})
		none(t, errs)
		norm := log.value(1, "grad_norm")
		if i == 0 {
			first = norm
		}
		near(t, fmt.Sprint("stage ", stage), []float64{norm}, []float64{first}, 1e-12)
		if !strings.Contains(r.Stopped(), "above 1e-09") || r.Progress().Step > 2 {
			t.Errorf("stage %d: ended at %v: %q", stage, r.Progress(), r.Stopped())
		}
	}
}

// What all ranks can use, callbacks see.
func TestRun(t *testing.T) {
	_, errs := fits(t, 2, func(rank int, tr *Trainer[[]float64]) {
		tr.Callbacks = []Callback{&looking{t: t, rank: rank}}
	})
	none(t, errs)
}

type looking struct {
	Base
	t    *testing.T
	rank int
}

func (l *looking) WorldStart(ctx context.Context, r *Run) error {
	epochs, steps := r.Limits()
	if r.Rank() != l.rank || r.Size() != 2 || epochs != 3 || steps != 0 || r.PerEpoch() != 50 || len(r.Params()) != 2 || r.Optimizer() == nil || r.FastRun() {
		l.t.Errorf("%+v", r)
	}
	return r.Group().Barrier(ctx).Wait()
}

func (l *looking) EpochEnd(_ context.Context, r *Run) error {
	m := r.Metrics()
	m[TrainLoss] = -1 // of a copy
	if v, ok := r.Metric(TrainLoss); !ok || v < 0 || r.Samples() != 50*(r.Progress().Epoch+1) || len(r.Times()) != int(phases) {
		l.t.Errorf("%v, %d samples, %v", v, r.Samples(), r.Times())
	}
	return nil
}

func (l *looking) FitEnd(_ context.Context, r *Run) error {
	if r.Group() != (*ops.Group)(nil) {
		l.t.Error("there is a group after the end")
	}
	return nil
}
