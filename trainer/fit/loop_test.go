package fit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"

	"peermesh/ops"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
	"peermesh/trainer/data"
)

// byHand is the same run as one rank and a loop would take it.
func byHand(t *testing.T, tr *Trainer[[]float64], m *wave) []float64 {
	t.Helper()
	opt, err := tr.Optimizer(m.params)
	if err != nil {
		t.Fatal(err)
	}
	var schedule *trainer.Schedule
	if tr.Curve != nil {
		if schedule, err = trainer.NewSchedule(opt, tr.Curve); err != nil {
			t.Fatal(err)
		}
	}
	for epoch := range tr.Epochs {
		for b, err := range tr.Train.Batches(context.Background(), Place{Epoch: epoch, Size: 1}) {
			if err == nil {
				_, err = m.ForwardBackward(context.Background(), b.Items, func(int) {})
			}
			if err == nil && tr.Clip > 0 {
				_, err = trainer.ClipGradNorm(m.params, tr.Clip)
			}
			if err == nil {
				err = opt.Step()
			}
			if err != nil {
				t.Fatal(err)
			}
			if schedule != nil && !tr.ByEpoch {
				schedule.Step()
			}
		}
		if schedule != nil && tr.ByEpoch {
			schedule.Step()
		}
	}
	return same(t, []*wave{m})
}

// Any number of ranks, in every mode, gets what one rank gets without a Trainer, and all
// ranks the same bits.
func TestModes(t *testing.T) {
	accumulated := func(tr *Trainer[[]float64]) { // batches of 2 on all ranks together, 4 a step
		tr.Train = points(50, trainer.ElasticConfig{Shuffle: true, Global: 2})
		tr.Accumulate = 4
	}
	for name, change := range map[string]func(tr *Trainer[[]float64]){
		"plain":       func(*Trainer[[]float64]) {},
		"accumulated": accumulated,
		"clipped":     func(tr *Trainer[[]float64]) { tr.Clip = 0.1 },
		"scaled":      func(tr *Trainer[[]float64]) { tr.Scaler = &trainer.ScalerConfig{Interval: 3}; tr.Clip = 0.1 },
		"zero1":       func(tr *Trainer[[]float64]) { tr.ZeRO = &trainer.ZeROConfig{Stage: 1}; tr.Clip = 0.1 },
		"zero2":       func(tr *Trainer[[]float64]) { tr.ZeRO = &trainer.ZeROConfig{}; tr.Clip = 0.1 },
		"zero2 accumulated": func(tr *Trainer[[]float64]) {
			tr.ZeRO, tr.Scaler = &trainer.ZeROConfig{Bucket: 8}, &trainer.ScalerConfig{Interval: 3}
			accumulated(tr)
		},
		"by step":  func(tr *Trainer[[]float64]) { tr.Curve = trainer.CosineAnnealing{Steps: 21} },
		"by epoch": func(tr *Trainer[[]float64]) { tr.Curve, tr.ByEpoch = trainer.StepLR{Every: 1}, true },
		"accumulated to an end that nobody knows": func(tr *Trainer[[]float64]) {
			accumulated(tr)
			tr.Train = endless{tr.Train}
		},
		"zero2 to such an end": func(tr *Trainer[[]float64]) {
			accumulated(tr)
			tr.Train, tr.ZeRO = endless{tr.Train}, &trainer.ZeROConfig{}
		},
		"loaded": func(tr *Trainer[[]float64]) {
			tr.Train = loaded(50, trainer.ElasticConfig{Shuffle: true, Global: 2})
			tr.Accumulate = 4
		},
		"unused": func(tr *Trainer[[]float64]) { tr.DDP.FindUnused = true },
		"sgd":    func(tr *Trainer[[]float64]) { tr.Optimizer = sgd },
	} {
		t.Run(name, func(t *testing.T) {
			alone := newWave()
			plain := basic(alone)
			change(plain)
			plain.Train = points(50, trainer.ElasticConfig{Shuffle: true, Global: 8})
			want := byHand(t, plain, alone)
			for n := 1; n <= 4; n++ {
				models, errs := fits(t, n, func(_ int, tr *Trainer[[]float64]) { change(tr) })
				none(t, errs)
				near(t, fmt.Sprint(n, " ranks"), same(t, models), want, 1e-12)
			}
		})
	}
}

// loaded is points made ahead by two workers, in memory that is used again.
func loaded(n int, c trainer.ElasticConfig) Data[[]float64] {
	return Loaded[float64, []float64]{
		Set:  data.Func[float64]{N: n, F: func(i int) (float64, error) { return float64(i) / float64(n) * 2 * math.Pi, nil }},
		Deal: c,
		Loader: data.Config[float64, []float64]{Workers: 2, Prefetch: 1, Collate: func(b *data.Buffer, samples []data.Sample[float64]) ([]float64, error) {
			x, err := data.Take[float64](b, len(samples))
			for i := range x {
				x[i] = samples[i].Value
			}
			return x, err
		}},
	}
}

// endless does not know its length, nor which batch is the last.
type endless struct{ Data[[]float64] }

func (endless) Len() int { return 1 << 40 }

func (e endless) Batches(ctx context.Context, from Place) iter.Seq2[Batch[[]float64], error] {
	return func(yield func(Batch[[]float64], error) bool) {
		for b, err := range e.Data.Batches(ctx, from) {
			b.last = false
			if !yield(b, err) {
				return
			}
		}
	}
}

func sgd(params []*trainer.Param) (trainer.Optimizer, error) {
	return trainer.NewSGD(params, trainer.SGDConfig{LR: 0.05, Momentum: 0.9})
}

// A step with a gradient that is not finite is skipped on all ranks, and the scale falls.
func TestScalerSkips(t *testing.T) {
	for _, stage := range []int{0, 1, 2} {
		models, errs := fits(t, 2, func(rank int, tr *Trainer[[]float64]) {
			tr.Scaler = &trainer.ScalerConfig{Initial: 0x1p1023}
			if stage > 0 {
				tr.ZeRO = &trainer.ZeROConfig{Stage: stage}
			}
			tr.Steps = 3
			tr.Train = Samples[[]float64]{N: 8, Deal: trainer.ElasticConfig{Global: 2}, Load: func(context.Context, []int) ([]float64, error) {
				return []float64{1}, nil // a large error, times the scale
			}}
			m := tr.Model.(*wave)
			m.b[0] = 100
		})
		none(t, errs)
		if same(t, models)[waves] != 100 {
			t.Errorf("stage %d: the offset has moved to %v", stage, models[0].b[0])
		}
	}
}

// One gradient of one rank that is not finite, in a share that ZeRO gives to another rank, has
// all of them skip the step, and no other.
func TestScalerSkipsAlike(t *testing.T) {
	for _, stage := range []int{0, 1, 2} {
		for _, element := range []int{0, waves - 1} { // of the first rank's share, and of the last's
			var moved [3]string
			models, errs := fits(t, 3, func(rank int, tr *Trainer[[]float64]) {
				tr.Scaler = &trainer.ScalerConfig{Initial: 1024, Interval: 100}
				if stage > 0 {
					tr.ZeRO = &trainer.ZeROConfig{Stage: stage}
				}
				tr.Steps = 6
				tr.Callbacks = []Callback{&moves{to: &moved[rank]}}
				if rank == 1 {
					tr.Model = &spoilt{tr.Model.(*wave), element}
				}
			})
			none(t, errs)
			same(t, models)
			for rank, m := range moved {
				if m != "xxx-xx" {
					t.Errorf("stage %d, element %d: rank %d takes steps %s", stage, element, rank, m)
				}
			}
		}
	}
}

// spoilt is a model one of whose gradients is infinite, in its fourth step.
type spoilt struct {
	*wave
	element int
}

func (s *spoilt) ForwardBackward(ctx context.Context, batch []float64, ready func(i int)) (float64, error) {
	return s.wave.ForwardBackward(ctx, batch, func(i int) {
		if i == 0 && s.calls == 4 {
			s.grad[s.element] = math.Inf(1)
		}
		ready(i)
	})
}

// moves writes down which steps have changed the parameters.
type moves struct {
	Base
	last [32]byte
	to   *string
}

func (m *moves) StepEnd(_ context.Context, r *Run) error {
	h, err := trainer.Hash(r.Params())
	*m.to += map[bool]string{true: "x", false: "-"}[h != m.last]
	m.last = h
	return err
}

// Validation counts each sample once, whatever the ranks, and their means by samples.
func TestValidate(t *testing.T) {
	for n := 1; n <= 5; n++ {
		got := make([]Metrics, n)
		none(t, ranks(t, n, func(rank int, w *memnet.World) (err error) {
			tr := basic(newWave())
			tr.Evaluate = func(_ context.Context, batch []float64) (Metrics, error) {
				return Metrics{"mean": sum(batch) / float64(len(batch))}, nil
			}
			got[rank], err = tr.Validate(context.Background(), ops.NewGroup(w, ops.Config{}))
			return err
		}))
		for rank, m := range got {
			if m["mean"] != got[0]["mean"] {
				t.Errorf("%d ranks: rank %d has %v, rank 0 %v", n, rank, m, got[0])
			}
			near(t, fmt.Sprint(n), []float64{m["mean"]}, []float64{6. / 13 * 2 * 3.141592653589793}, 1e-14)
		}
	}
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

// An error or a panic on one rank, wherever, ends all ranks, and they say so.
func TestFailures(t *testing.T) {
	pulled := errors.New("the plug was pulled")
	for name, f := range map[string]struct {
		change func(tr *Trainer[[]float64])
		panics bool
	}{
		"model":       {func(tr *Trainer[[]float64]) { tr.Model.(*wave).before = after(3, pulled) }, false},
		"model panic": {func(tr *Trainer[[]float64]) { tr.Model.(*wave).before = after(3, nil) }, true},
		"evaluate": {func(tr *Trainer[[]float64]) {
			tr.Evaluate = func(context.Context, []float64) (Metrics, error) { return nil, pulled }
		}, false},
		"data": {func(tr *Trainer[[]float64]) {
			d := tr.Train.(Samples[[]float64])
			d.Load = func(context.Context, []int) ([]float64, error) { return nil, pulled }
			tr.Train = d
		}, false},
		"optimiser":      {func(tr *Trainer[[]float64]) { tr.Callbacks = []Callback{&failing{at: "update start", err: pulled}} }, false},
		"epoch end":      {func(tr *Trainer[[]float64]) { tr.Callbacks = []Callback{&failing{at: "epoch end", err: pulled}} }, false},
		"validation end": {func(tr *Trainer[[]float64]) { tr.Callbacks = []Callback{&failing{at: "validation end", err: pulled}} }, false},
		"callback panic": {func(tr *Trainer[[]float64]) { tr.Callbacks = []Callback{&failing{at: "step end"}} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			var heard error
			_, errs := fits(t, 3, func(rank int, tr *Trainer[[]float64]) {
				tr.Callbacks = []Callback{&failing{}} // the same kinds on all ranks
				if rank == 1 {
					f.change(tr)
					if len(tr.Callbacks) == 1 {
						tr.Callbacks[0].(*failing).heard = func(err error) { heard = err }
					}
				}
			})
			for rank, err := range errs {
				want := "the plug was pulled"
				if f.panics {
					want = "panic: the plug was pulled"
				}
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("rank %d: %v", rank, err)
				}
			}
			_, isPanic := errors.AsType[*PanicError](errs[1])
			if errors.Is(errs[1], pulled) == f.panics || isPanic != f.panics {
				t.Errorf("the rank itself returns %v", errs[1])
			}
			if heard == nil || !errors.Is(errs[1], heard) {
				t.Errorf("Exception heard %v", heard)
			}
		})
	}
}

// after is a model's failure in some call; nil is a panic.
func after(call int, err error) func(int) error {
	return func(n int) error {
		if n < call {
			return nil
		}
		if err == nil {
			panic("the plug was pulled")
		}
		return err
	}
}

// A place names a step of the data and is found again, limited or not.
func TestPlaces(t *testing.T) {
	whole := points(50, trainer.ElasticConfig{Shuffle: true, Global: 8})
	collect := func(d Data[[]float64], from Place) (all []float64) {
		for b, err := range d.Batches(context.Background(), from) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b.Items...)
		}
		return all
	}
	for _, d := range []Data[[]float64]{whole, loaded(50, trainer.ElasticConfig{Shuffle: true, Global: 8}), limit(Data[[]float64](whole), 3, false)} {
		all := collect(d, Place{Epoch: 1, Size: 1})
		if rest := collect(d, Place{Epoch: 1, Consumed: 16, Size: 1}); !slices.Equal(rest, all[16:]) {
			t.Errorf("from 16 on: %v, not %v", rest, all[16:])
		}
	}
	if n := len(collect(limit(Data[[]float64](whole), 3, false), Place{Size: 1})); n != 24 {
		t.Errorf("3 batches of 8 have %d samples", n)
	}
	fixed := limit(Data[[]float64](whole), 2, true)
	if !slices.Equal(collect(fixed, Place{Epoch: 5, Size: 1}), collect(whole, Place{Size: 1})[:16]) {
		t.Error("another epoch has other batches to overfit")
	}
}
