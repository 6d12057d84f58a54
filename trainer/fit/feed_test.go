package fit

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"peermesh/trainer"
)

// spied counts the streams that are open.
type spied struct {
	Data[[]float64]
	begun, open int
}

func (s *spied) Batches(ctx context.Context, from Place) iter.Seq2[Batch[[]float64], error] {
	return func(yield func(Batch[[]float64], error) bool) {
		s.begun++
		s.open++
		defer func() { s.open-- }()
		for b, err := range s.Data.Batches(ctx, from) {
			if !yield(b, err) {
				return
			}
		}
	}
}

// Steps that follow each other are of one stream. One that is taken again, or by another
// rank or world, is of a new one, and gets the same batch; none stays open.
func TestFeed(t *testing.T) {
	s := &spied{Data: points(50, trainer.ElasticConfig{Shuffle: true, Global: 8})}
	f := &feed[[]float64]{data: s, accumulate: 1, ctx: t.Context(), spent: new(time.Duration)}
	deal := func(p trainer.Progress, rank, size int) []float64 {
		t.Helper()
		share, more := f.Deal(p, rank, size)
		if !more || f.err != nil || share.Total != 8 || share.Progress != p {
			t.Fatalf("%+v, %v, %v", share, more, f.err)
		}
		return f.batch.Items
	}
	first := deal(trainer.Progress{}, 0, 1)
	second := deal(trainer.Progress{Step: 1, Consumed: 8}, 0, 1)
	if s.begun != 1 || slices.Equal(first, second) {
		t.Errorf("%d streams for two steps: %v, %v", s.begun, first, second)
	}
	if again := deal(trainer.Progress{Step: 1, Consumed: 8}, 0, 1); !slices.Equal(again, second) || s.begun != 2 {
		t.Errorf("again it is %v, not %v, by stream %d", again, second, s.begun)
	}
	if part := deal(trainer.Progress{Step: 2, Consumed: 16}, 1, 2); len(part) != 4 || s.begun != 3 || s.open != 1 {
		t.Errorf("in another world %v, by stream %d of %d", part, s.begun, s.open)
	}
	if share, more := f.Deal(trainer.Progress{Consumed: 50}, 0, 1); more {
		t.Errorf("after the end there is %+v", share)
	}
	f.close()
	f.close()
	if s.open != 0 {
		t.Errorf("%d streams are open", s.open)
	}
}

// An error of the data waits for the step that needs it.
func TestFeedError(t *testing.T) {
	d := points(8, trainer.ElasticConfig{Batch: 4})
	d.Load = func(context.Context, []int) ([]float64, error) { return nil, errBroken }
	f := &feed[[]float64]{data: d, accumulate: 1, ctx: t.Context(), spent: new(time.Duration)}
	if share, more := f.Deal(trainer.Progress{}, 0, 1); !more || share.Total < 1 || !errors.Is(f.err, errBroken) {
		t.Errorf("%+v, %v, %v", share, more, f.err)
	}
	for _, b := range []Batch[int]{{Samples: -1, Total: 1}, {Samples: 2, Total: 1}, {}, {Total: trainer.MaxSamples + 1}} {
		if b.check() == nil {
			t.Errorf("%+v is taken", b)
		}
	}
}

// steps is a model that writes down what it is told of its batches.
type steps struct {
	*wave
	told   []int64
	stream uint64
}

func (s *steps) SetStep(step int64) { s.told = append(s.told, step) }
func (s *steps) SetStream(n uint64) { s.stream = n }

// A model with dropout is told which batch of the run it has, and which rank it is.
func TestSetStep(t *testing.T) {
	models := make([]*steps, 2)
	_, errs := fits(t, 2, func(rank int, tr *Trainer[[]float64]) {
		models[rank] = &steps{wave: tr.Model.(*wave)}
		tr.Model = models[rank]
		tr.Accumulate, tr.Steps = 2, 3
	})
	none(t, errs)
	for rank, m := range models {
		if !slices.Equal(m.told, []int64{0, 1, 2, 3, 4, 5}) || m.stream != uint64(rank) {
			t.Errorf("rank %d is told %v, %d", rank, m.told, m.stream)
		}
	}
}
