package fit

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"peermesh/trainer"
	"peermesh/trainer/local"
)

// What cannot be run is refused before it begins.
func TestSettings(t *testing.T) {
	for want, change := range map[string]func(tr *Trainer[[]float64]){
		"are needed":      func(tr *Trainer[[]float64]) { tr.Optimizer = nil },
		"negative":        func(tr *Trainer[[]float64]) { tr.ValidEvery = -1 },
		"one of Epochs":   func(tr *Trainer[[]float64]) { tr.Epochs = 0 },
		"go together":     func(tr *Trainer[[]float64]) { tr.Valid = nil },
		"batches a step":  func(tr *Trainer[[]float64]) { tr.Accumulate = MaxAccumulate + 1 },
		"Clip":            func(tr *Trainer[[]float64]) { tr.Clip = -1 },
		"Uneven":          func(tr *Trainer[[]float64]) { tr.DDP.Uneven = trainer.DivideByAll },
		"all or nothing":  func(tr *Trainer[[]float64]) { tr.DDP.Update = func(int) error { return nil } },
		"each rank's own": func(tr *Trainer[[]float64]) { tr.Local, tr.ZeRO = local.LocalSGD{}, &trainer.ZeROConfig{} },
		"want 1 to":       func(tr *Trainer[[]float64]) { tr.Local = local.LocalSGD{Every: -1} },
		"Resume without":  func(tr *Trainer[[]float64]) { tr.Resume = true },
		"Plateau without": func(tr *Trainer[[]float64]) { tr.Plateau, tr.Valid, tr.Evaluate = &trainer.PlateauConfig{}, nil, nil },
		"a nil callback":  func(tr *Trainer[[]float64]) { tr.Callbacks = []Callback{nil} },
		"built none": func(tr *Trainer[[]float64]) {
			tr.Optimizer = func([]*trainer.Param) (trainer.Optimizer, error) { return nil, nil }
		},
		"have 4":        func(tr *Trainer[[]float64]) { tr.Train = lying{tr.Train} },
		"not called on": func(tr *Trainer[[]float64]) { tr.Callbacks = []Callback{lonely{}} },
		"without Load": func(tr *Trainer[[]float64]) {
			tr.Train = Samples[[]float64]{N: 3, Deal: trainer.ElasticConfig{Batch: 1}}
		},
		"want one of": func(tr *Trainer[[]float64]) { tr.Train = points(3, trainer.ElasticConfig{}) },
		"instead of": func(tr *Trainer[[]float64]) {
			d := loaded(3, trainer.ElasticConfig{Batch: 1}).(Loaded[float64, []float64])
			d.Loader.Batch = 5
			tr.Train = d
		},
		"scaler: ":        func(tr *Trainer[[]float64]) { tr.Scaler = &trainer.ScalerConfig{Growth: 0.5} },
		"plateau: ":       func(tr *Trainer[[]float64]) { tr.Plateau = &trainer.PlateauConfig{Factor: 2} },
		"step schedule: ": func(tr *Trainer[[]float64]) { tr.Curve = trainer.StepLR{} },
	} {
		_, errs := fits(t, 1, func(_ int, tr *Trainer[[]float64]) { change(tr) })
		if errs[0] == nil || !strings.Contains(errs[0].Error(), want) {
			t.Errorf("%q: %v", want, errs[0])
		}
	}
}

// Ranks that have been told different things each hear of it.
func TestSettingsDiffer(t *testing.T) {
	for says, change := range map[string]func(tr *Trainer[[]float64]){
		"Accumulate is 2 on rank 1 and 1 on rank 0":                                  func(tr *Trainer[[]float64]) { tr.Accumulate = 2 },
		"LimitTrain is 3 on rank 1 and 0 on rank 0":                                  func(tr *Trainer[[]float64]) { tr.LimitTrain = 3 },
		"DDP.Static is true on rank 1 and false on rank 0":                           func(tr *Trainer[[]float64]) { tr.DDP.Static = true },
		"DDP.Hook is given on rank 1 and none on rank 0":                             func(tr *Trainer[[]float64]) { tr.DDP.Hook = trainer.Float16 },
		"Callbacks is [*fit.Timer] on rank 1 and [] on rank 0":                       func(tr *Trainer[[]float64]) { tr.Callbacks = []Callback{&Timer{}} },
		"Epochs is 4 on rank 1 and 3 on rank 0, Clip is 1 on rank 1 and 0 on rank 0": func(tr *Trainer[[]float64]) { tr.Epochs, tr.Clip = 4, 1 },
	} {
		_, errs := fits(t, 3, func(rank int, tr *Trainer[[]float64]) {
			if rank == 1 {
				change(tr)
			}
		})
		for rank, err := range errs {
			s, ok := errors.AsType[*SettingsError](err)
			if !ok || s.Rank != 1 || s.Error() != "fit: ranks have different settings: "+says {
				t.Errorf("%s: rank %d: %v", says, rank, err)
			}
		}
	}
}

// Lists of other names are of another program, and no index out of range.
func TestSettingsOfAnotherVersion(t *testing.T) {
	zero := []setting{{"Epochs", "1"}, {"Clip", "0"}}
	for says, theirs := range map[string][]setting{
		"1 settings, rank 0 has 2":           zero[:1],
		`a setting "Steps", on rank 0 it is`: {{"Epochs", "1"}, {"Steps", "0"}},
	} {
		if _, err := differences(zero, theirs); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// lying claims more samples than it has.
type lying struct{ Data[[]float64] }

func (l lying) Batches(ctx context.Context, from Place) iter.Seq2[Batch[[]float64], error] {
	return func(yield func(Batch[[]float64], error) bool) {
		for b, err := range l.Data.Batches(ctx, from) {
			b.Samples = 4
			yield(b, err)
			return
		}
	}
}

// lonely has a memory on one rank.
type lonely struct{ RankZero }

func (lonely) Memory() (string, []float64) { return "lonely", nil }
