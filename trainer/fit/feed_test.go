package fit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
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

// What is looked at ahead comes in its step all the same, once, and not to another world.
func TestFeedPeeks(t *testing.T) {
	s := &spied{Data: points(20, trainer.ElasticConfig{Global: 8})}
	f := &feed[[]float64]{data: s, accumulate: 1, ctx: t.Context(), spent: new(time.Duration)}
	if _, there := f.peek(); there {
		t.Error("there is a batch before a stream")
	}
	for step, samples := range []int{8, 8, 4} {
		p := trainer.Progress{Step: int64(step), Consumed: int64(8 * step)}
		if _, more := f.Deal(p, 0, 1); !more || len(f.batch.Items) != samples || f.at.Consumed != p.Consumed+int64(samples) {
			t.Fatalf("step %d: %v of %+v", step, f.batch, f.at)
		}
		was := f.batch.Total
		next, there := f.peek()
		again, _ := f.peek()
		if there != (step < 2) || there && (len(next.Items) == 0 || &next.Items[0] != &again.Items[0]) || f.batch.Total != was {
			t.Errorf("after step %d: %v, %v, then %v", step, next, there, again)
		}
	}
	if _, more := f.Deal(trainer.Progress{Step: 3, Consumed: 20}, 0, 1); more || s.begun != 1 {
		t.Errorf("more %v, %d streams", more, s.begun)
	}
	f.Deal(trainer.Progress{}, 0, 1)
	f.peek()
	if f.Deal(trainer.Progress{Consumed: 8}, 1, 2); len(f.batch.Items) != 4 || f.ahead != nil {
		t.Errorf("another world has %v", f.batch)
	}
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
	good, bad := Batch[[]float64]{Samples: 1, Total: 1}, errBroken
	f = &feed[[]float64]{spent: new(time.Duration), stop: func() {}}
	f.next = func() (Batch[[]float64], error, bool) { return good, bad, true }
	if _, there := f.peek(); there || f.err != nil {
		t.Errorf("a broken batch is there, or is the error of the step before: %v", f.err)
	}
	if !f.pull() || !errors.Is(f.err, errBroken) || f.next != nil {
		t.Errorf("in its step: %v", f.err)
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

// fetcher is a model that writes down which batches come to it, and when.
type fetcher struct {
	*wave
	did []string
	err error
}

func (f *fetcher) Prefetch(b []float64) error {
	f.did = append(f.did, fmt.Sprint("fetch ", b))
	return f.err
}

func (f *fetcher) ForwardBackward(ctx context.Context, b []float64, ready func(int)) (float64, error) {
	f.did = append(f.did, fmt.Sprint("train ", b))
	return f.wave.ForwardBackward(ctx, b, ready)
}

// A model that can is given each batch but an epoch's first while the step before is averaged,
// and none that the run does not take. It learns what another does.
func TestPrefetches(t *testing.T) {
	for _, c := range []struct{ accumulate, steps, fetched int }{{1, 7, 3 + 2}, {2, 3, 1}, {1, 0, 3 + 3}} {
		models := make([]*fetcher, 2)
		set := func(rank int, tr *Trainer[[]float64]) {
			tr.Train = points(32, trainer.ElasticConfig{Global: 8})
			tr.Accumulate, tr.Steps, tr.Epochs = c.accumulate, int64(c.steps), 2
		}
		_, errs := fits(t, 2, func(rank int, tr *Trainer[[]float64]) {
			set(rank, tr)
			models[rank] = &fetcher{wave: tr.Model.(*wave)}
			tr.Model = models[rank]
		})
		none(t, errs)
		plain := make([]*wave, 2)
		_, errs = fits(t, 2, func(rank int, tr *Trainer[[]float64]) {
			set(rank, tr)
			plain[rank] = tr.Model.(*wave)
		})
		none(t, errs)
		for rank, m := range models {
			fetched := 0
			for i, what := range m.did {
				batch, fetch := strings.CutPrefix(what, "fetch ")
				if !fetch {
					continue
				}
				fetched++
				if i == 0 || i+1 == len(m.did) || m.did[i+1] != "train "+batch {
					t.Errorf("rank %d: %q at %d of %q", rank, what, i, m.did)
				}
			}
			if fetched != c.fetched {
				t.Errorf("%+v: rank %d: %q", c, rank, m.did)
			}
			if !slices.Equal(m.w, plain[rank].w) {
				t.Errorf("rank %d has learnt %v, without fetching ahead %v", rank, m.w, plain[rank].w)
			}
		}
	}
}

func TestPrefetchFails(t *testing.T) {
	_, errs := fits(t, 2, func(rank int, tr *Trainer[[]float64]) {
		if rank == 1 {
			tr.Model = &fetcher{wave: tr.Model.(*wave), err: errBroken}
		}
	})
	for rank, err := range errs {
		if err == nil || !strings.Contains(err.Error(), errBroken.Error()) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}
