package fit

import (
	"slices"
	"testing"

	"peermesh/trainer"
	"peermesh/trainer/local"
)

// An epoch whose last batch is dropped is one of as many whole batches: with the data dealt in
// either way, with steps of several batches, on any number of ranks, and where ranks step on their own.
func TestDropLast(t *testing.T) {
	type deal func(n int, c trainer.ElasticConfig) Data[[]float64]
	for name, c := range map[string]struct {
		deal    deal
		batches int // of 8 in 50 samples
		change  func(tr *Trainer[[]float64])
	}{
		"samples":     {func(n int, c trainer.ElasticConfig) Data[[]float64] { return points(n, c) }, 6, func(*Trainer[[]float64]) {}},
		"loaded":      {loaded, 6, func(*Trainer[[]float64]) {}},
		"accumulated": {loaded, 6, func(tr *Trainer[[]float64]) { tr.Accumulate = 4 }},
		"local":       {loaded, 6, func(tr *Trainer[[]float64]) { tr.Local = local.LocalSGD{Every: 4} }},
		"limited":     {loaded, 5, func(tr *Trainer[[]float64]) { tr.LimitTrain = 5 }},
	} {
		t.Run(name, func(t *testing.T) {
			for n := 1; n <= 3; n++ {
				run := func(drop bool) []float64 {
					models, errs := fits(t, n, func(_ int, tr *Trainer[[]float64]) {
						if !drop {
							tr.LimitTrain = c.batches
						}
						c.change(tr)
						tr.Train = c.deal(50, trainer.ElasticConfig{Shuffle: true, Global: 8, DropLast: drop})
					})
					none(t, errs)
					return same(t, models)
				}
				if got, want := run(true), run(false); !slices.Equal(got, want) {
					t.Errorf("%d ranks: %v, and with %d batches an epoch %v", n, got, c.batches, want)
				}
			}
		})
	}
}
