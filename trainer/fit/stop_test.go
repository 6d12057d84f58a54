package fit

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"

	"peermesh/trainer"
)

// stopper stops the run on one rank, at one place.
type stopper struct {
	Base
	at   string
	step int64
}

func (s *stopper) stop(at string, r *Run) error {
	if at == s.at && r.Progress().Step >= s.step {
		r.Stop("enough")
	}
	return nil
}
func (s *stopper) StepStart(_ context.Context, r *Run) error     { return s.stop("step start", r) }
func (s *stopper) StepEnd(_ context.Context, r *Run) error       { return s.stop("step end", r) }
func (s *stopper) ValidationEnd(_ context.Context, r *Run) error { return s.stop("validation", r) }
func (s *stopper) EpochEnd(_ context.Context, r *Run) error      { return s.stop("epoch", r) }

// What one rank decides, stops all after the same step; there are seven an epoch.
func TestStop(t *testing.T) {
	for _, c := range []struct {
		at          string
		step        int64
		validEvery  int64
		ends, epoch int64
	}{
		{"step start", 0, 0, 1, 0},
		{"step start", 3, 0, 4, 0},
		{"step end", 3, 0, 4, 0},
		{"step end", 7, 0, 7, 1}, // the epoch's last, where all are asked
		{"validation", 0, 0, 7, 1},
		{"validation", 0, 4, 4, 0},
		{"epoch", 8, 0, 14, 2},
		{"never", 0, 0, 21, 3},
	} {
		runs := make([]*Run, 3)
		models, errs := fits(t, 3, func(rank int, tr *Trainer[[]float64]) {
			s := &stopper{at: "never"}
			if rank == 2 {
				s = &stopper{at: c.at, step: c.step}
			}
			tr.ValidEvery = c.validEvery
			tr.Callbacks = []Callback{s, &keepRun{to: &runs[rank]}}
		})
		none(t, errs)
		same(t, models)
		for rank, r := range runs {
			if at := r.Progress(); at.Step != c.ends || at.Epoch != c.epoch {
				t.Errorf("%+v: rank %d ended at %v", c, rank, at)
			}
			want := map[bool]string{true: "enough", false: "another rank has stopped the run"}[rank == 2]
			if c.at == "never" {
				want = ""
			}
			if r.Stopped() != want {
				t.Errorf("%+v: rank %d says %q", c, rank, r.Stopped())
			}
		}
	}
}

// wordless stops a run without a word.
type wordless struct{ Base }

func (wordless) StepStart(_ context.Context, r *Run) error {
	r.Stop("")
	return nil
}

// Who says nothing of why is heard all the same.
func TestStopWithoutAWord(t *testing.T) {
	var r *Run
	_, errs := fits(t, 1, func(_ int, tr *Trainer[[]float64]) {
		tr.Callbacks = []Callback{wordless{}, &keepRun{to: &r}}
	})
	none(t, errs)
	if r.Progress().Step != 1 || r.Stopped() != "a callback has stopped the run" {
		t.Errorf("ended at %v: %q", r.Progress(), r.Stopped())
	}
}

// Wherever a run is stopped, the model that it leaves has been validated, once, and saved.
func TestStopKeepsTheModel(t *testing.T) {
	for _, at := range []string{"step start", "step end", "epoch"} {
		for _, change := range []func(tr *Trainer[[]float64]){
			func(tr *Trainer[[]float64]) { tr.ValidEpochs, tr.CheckpointEvery = 2, 5 },
			func(tr *Trainer[[]float64]) { tr.ValidEvery, tr.CheckpointEvery = 100, 100 },
		} {
			var r *Run
			c, dir := new(counting), t.TempDir()
			_, errs := fits(t, 2, func(rank int, tr *Trainer[[]float64]) {
				tr.Checkpoints = &trainer.Checkpoints{Dir: dir}
				tr.Callbacks = []Callback{new(counting), &stopper{at: at, step: 7 - map[string]int64{"step start": 1}[at]}, &keepRun{to: new(*Run)}}
				if rank == 0 {
					tr.Callbacks = []Callback{c, &stopper{at: "never"}, &keepRun{to: &r}}
				}
				change(tr)
			})
			none(t, errs)
			if r.Progress().Step != 7 || c.memory[0] != 1 {
				t.Errorf("%s: ended at %v after %v validations", at, r.Progress(), c.memory)
			}
			if last, err := (&trainer.Checkpoints{Dir: dir}).Latest(); err != nil || last.Step != 7 {
				t.Errorf("%s: the last checkpoint is of %v, %v", at, last, err)
			}
		}
	}
}

// A run of so many steps whose last validation is no number says that, as one of epochs does,
// and the bar shows it.
func TestStopAtTheLastStep(t *testing.T) {
	runs := make([]*Run, 2)
	var out bytes.Buffer
	_, errs := fits(t, 2, func(rank int, tr *Trainer[[]float64]) {
		scripted(tr, math.NaN())
		tr.Epochs, tr.Steps = 0, 3
		tr.Callbacks = []Callback{&EarlyStopping{}, &ProgressBar{Out: &out, Force: true}, &keepRun{to: &runs[rank]}}
	})
	none(t, errs)
	for rank, r := range runs {
		if why := r.Stopped(); !strings.HasPrefix(why, "val/loss is NaN, which is not finite, after step 3, in epoch 0") {
			t.Errorf("rank %d says %q", rank, why)
		}
	}
	if !strings.HasSuffix(out.String(), "\nstopped: "+runs[0].Stopped()+"\n") {
		t.Errorf("the bar ends with %q", out.String())
	}
}
