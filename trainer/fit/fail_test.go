package fit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"peermesh/ops"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
	"peermesh/trainer/data"
)

// failing fails at one place.
type failing struct {
	Base
	at    string
	err   error // nil: it panics
	heard func(error)
}

func (f *failing) do(at string) error {
	if at == f.at && f.err == nil {
		panic("the plug was pulled")
	}
	if at == f.at {
		return f.err
	}
	return nil
}

// places are all that a run with a checkpoint to resume from comes by, in order.
var places = []string{"checkpoint load", "fit start", "world start", "epoch start", "step start", "backward start", "backward end",
	"update start", "step end", "validation start", "validation end", "epoch end", "checkpoint save"}

func (f *failing) FitStart(context.Context, *Run) error        { return f.do("fit start") }
func (f *failing) FitEnd(context.Context, *Run) error          { return f.do("fit end") }
func (f *failing) WorldStart(context.Context, *Run) error      { return f.do("world start") }
func (f *failing) EpochStart(context.Context, *Run) error      { return f.do("epoch start") }
func (f *failing) StepStart(context.Context, *Run) error       { return f.do("step start") }
func (f *failing) BackwardStart(context.Context, *Run) error   { return f.do("backward start") }
func (f *failing) BackwardEnd(context.Context, *Run) error     { return f.do("backward end") }
func (f *failing) UpdateStart(context.Context, *Run) error     { return f.do("update start") }
func (f *failing) StepEnd(context.Context, *Run) error         { return f.do("step end") }
func (f *failing) EpochEnd(context.Context, *Run) error        { return f.do("epoch end") }
func (f *failing) ValidationStart(context.Context, *Run) error { return f.do("validation start") }
func (f *failing) ValidationEnd(context.Context, *Run) error   { return f.do("validation end") }
func (f *failing) CheckpointSave(context.Context, *Run, *trainer.Checkpoints) error {
	return f.do("checkpoint save")
}
func (f *failing) CheckpointLoad(context.Context, *Run, *trainer.Checkpoints) error {
	return f.do("checkpoint load")
}
func (f *failing) Exception(_ context.Context, _ *Run, err error) error {
	if f.heard != nil {
		f.heard(err)
	}
	return f.do("exception")
}

var errPulled = errors.New("the plug was pulled")

// A hook of a callback that fails or panics on one rank, whichever, ends all ranks with
// that, and all of them hear of it.
func TestCallbacksFail(t *testing.T) {
	dir := t.TempDir()
	_, errs := fits(t, 3, func(_ int, tr *Trainer[[]float64]) {
		tr.Steps, tr.Checkpoints = 3, &trainer.Checkpoints{Dir: dir}
	})
	none(t, errs)
	for _, at := range places {
		for _, err := range []error{errPulled, nil} {
			heard := make([]error, 3)
			_, errs := fits(t, 3, func(rank int, tr *Trainer[[]float64]) {
				tr.Checkpoints, tr.Resume = &trainer.Checkpoints{Dir: dir}, true
				f := &failing{at: "nowhere", heard: func(err error) { heard[rank] = err }}
				if rank == 1 {
					f.at, f.err = at, err
				}
				tr.Callbacks = []Callback{&failing{at: "exception", err: errBroken}, f}
			})
			for rank, got := range errs {
				if got == nil || !strings.Contains(got.Error(), "the plug was pulled") || !errors.Is(got, errBroken) || strings.Contains(got.Error(), "fit: fit:") {
					t.Errorf("%s: rank %d: %v", at, rank, got)
				}
				if heard[rank] == nil || !strings.Contains(heard[rank].Error(), "the plug was pulled") {
					t.Errorf("%s: on rank %d Exception heard %v", at, rank, heard[rank])
				}
			}
			if _, panicked := errors.AsType[*PanicError](errs[1]); panicked != (err == nil) || err != nil && !errors.Is(errs[1], err) {
				t.Errorf("%s: the rank itself returns %v", at, errs[1])
			}
		}
	}
}

// After the end there is nobody to tell, and a panic is an error all the same; of Exception,
// too, and then the others hear of what was.
func TestCallbacksFailAtTheEnd(t *testing.T) {
	for _, err := range []error{errPulled, nil} {
		_, errs := fits(t, 2, func(rank int, tr *Trainer[[]float64]) {
			f := &failing{at: "nowhere"}
			if rank == 1 {
				f.at, f.err = "fit end", err
			}
			tr.Callbacks = []Callback{f}
		})
		if errs[0] != nil || errs[1] == nil || !strings.Contains(errs[1].Error(), "the plug was pulled") {
			t.Errorf("%v", errs)
		}
	}
	var heard error
	_, errs := fits(t, 1, func(_ int, tr *Trainer[[]float64]) {
		tr.Model.(*wave).before = after(2, errBroken)
		tr.Callbacks = []Callback{&failing{at: "exception"}, &failing{heard: func(err error) { heard = err }}}
	})
	if _, ok := errors.AsType[*PanicError](errs[0]); !ok || !errors.Is(errs[0], errBroken) || !errors.Is(heard, errBroken) {
		t.Errorf("%v, heard %v", errs[0], heard)
	}
}

// lame is an optimiser that fails in its third step.
type lame struct {
	trainer.Optimizer
	steps int
}

func (l *lame) Step() error {
	if l.steps++; l.steps == 3 {
		return errPulled
	}
	return l.Optimizer.Step()
}

// full is a logger whose disk is.
type full struct{}

func (full) Log(int64, map[string]float64) error { return errPulled }

// So do the parts of a run that are not callbacks.
func TestPartsFail(t *testing.T) {
	hook := func(fails bool) trainer.Hook {
		return trainer.HookFunc(func(ctx context.Context, g *ops.Group, b trainer.Bucket) trainer.Pending {
			if fails {
				return trainer.Failed(errPulled)
			}
			return trainer.Float16.Reduce(ctx, g, b)
		})
	}
	for name, change := range map[string]func(fails bool, tr *Trainer[[]float64]){
		"hook":         func(fails bool, tr *Trainer[[]float64]) { tr.DDP.Hook = hook(fails) },
		"hook of ZeRO": func(fails bool, tr *Trainer[[]float64]) { tr.DDP.Hook, tr.ZeRO = hook(fails), &trainer.ZeROConfig{} },
		"optimiser": func(fails bool, tr *Trainer[[]float64]) {
			tr.Optimizer = func(p []*trainer.Param) (trainer.Optimizer, error) {
				o, err := adam(p)
				if fails {
					o = &lame{Optimizer: o}
				}
				return o, err
			}
		},
		"set": func(fails bool, tr *Trainer[[]float64]) { // whose samples come from goroutines of a loader
			d := loaded(50, trainer.ElasticConfig{Shuffle: true, Global: 8}).(Loaded[float64, []float64])
			if fails {
				d.Set = data.Func[float64]{N: 50, F: func(int) (float64, error) { panic(errPulled) }}
			}
			tr.Train = d
		},
		"logger": func(fails bool, tr *Trainer[[]float64]) {
			if fails {
				tr.Loggers, tr.LogEvery = []Logger{full{}}, 1
			}
		},
		"progress bar": func(fails bool, tr *Trainer[[]float64]) {
			if fails {
				tr.Callbacks = []Callback{&ProgressBar{Out: brokenPipe{}, Force: true}}
			}
		},
	} {
		_, errs := fits(t, 3, func(rank int, tr *Trainer[[]float64]) { change(rank == 0, tr) })
		for rank, err := range errs {
			if err == nil || !strings.Contains(err.Error(), "the plug was pulled") {
				t.Errorf("%s: rank %d: %v", name, rank, err)
			}
		}
		if _, panicked := errors.AsType[*PanicError](errs[0]); !errors.Is(errs[0], errPulled) || panicked != (name == "set") {
			t.Errorf("%s: the rank itself returns %v", name, errs[0])
		}
	}
}

// brokenPipe takes nothing.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errPulled }

// What fails on one rank in a validation of its own, without a run, all ranks are told: the
// group has no other way to end it.
func TestValidateFails(t *testing.T) {
	for name, change := range map[string]func(tr *Trainer[[]float64]){
		"evaluate": func(tr *Trainer[[]float64]) {
			tr.Evaluate = func(context.Context, []float64) (Metrics, error) { return nil, errPulled }
		},
		"data": func(tr *Trainer[[]float64]) {
			d := points(13, trainer.ElasticConfig{Batch: 2})
			d.Load = func(context.Context, []int) ([]float64, error) { return nil, errPulled }
			tr.Valid = d
		},
	} {
		errs := ranks(t, 3, func(rank int, w *memnet.World) error {
			tr := basic(newWave())
			if rank == 1 {
				change(tr)
			}
			_, err := tr.Validate(context.Background(), ops.NewGroup(w, ops.Config{}))
			return err
		})
		for rank, err := range errs {
			if err == nil || !strings.Contains(err.Error(), "the plug was pulled") || errors.Is(err, errPulled) != (rank == 1) {
				t.Errorf("%s: rank %d: %v", name, rank, err)
			}
		}
	}
}

// What is wrong before the first step, on one rank, ends all.
func TestFailsBeforeTheWorld(t *testing.T) {
	for name, change := range map[string]func(tr *Trainer[[]float64]){
		"settings": func(tr *Trainer[[]float64]) { tr.Epochs = 0 },
		"optimiser": func(tr *Trainer[[]float64]) {
			tr.Optimizer = func([]*trainer.Param) (trainer.Optimizer, error) { return nil, errPulled }
		},
		"data": func(tr *Trainer[[]float64]) { tr.Train = points(0, trainer.ElasticConfig{Global: 8}) },
	} {
		_, errs := fits(t, 3, func(rank int, tr *Trainer[[]float64]) {
			if rank == 1 {
				change(tr)
			}
		})
		for rank, err := range errs {
			if err == nil || !strings.Contains(err.Error(), errs[1].Error()) {
				t.Errorf("%s: rank %d: %v", name, rank, err)
			}
		}
	}
}

// partingWorld is a world that says when the others know of its end.
type partingWorld struct {
	*memnet.World
	asked bool
}

func (p *partingWorld) Done() <-chan struct{} {
	p.asked = true
	return p.Context().Done()
}

// A rank whose run has failed returns when the others know why, as it may exit then.
func TestFailsAloud(t *testing.T) {
	for _, fault := range []error{errPulled, nil} {
		errs := ranks(t, 1, func(_ int, w *memnet.World) error {
			p := &partingWorld{World: w}
			tr := basic(newWave())
			tr.Callbacks = []Callback{&failing{at: "step end", err: fault}}
			if err := tr.Fit(context.Background(), p); err == nil || !p.asked {
				return fmt.Errorf("asked %v after %w", p.asked, err)
			}
			return nil
		})
		none(t, errs)
	}
}

// forgetful leaves a gradient out, once.
type forgetful struct{ *wave }

func (m forgetful) ForwardBackward(ctx context.Context, batch []float64, ready func(i int)) (float64, error) {
	return m.wave.ForwardBackward(ctx, batch, func(i int) {
		if i != 1 || m.calls != 3 {
			ready(i)
		}
	})
}

// A gradient that is not ready on one rank is named on all, whatever travels beside it.
func TestForgottenGradient(t *testing.T) {
	for _, stage := range []int{0, 1, 2} {
		_, errs := fits(t, 3, func(rank int, tr *Trainer[[]float64]) {
			if stage > 0 {
				tr.ZeRO = &trainer.ZeROConfig{Stage: stage}
			}
			if rank == 1 {
				tr.Model = forgetful{tr.Model.(*wave)}
			}
		})
		for rank, err := range errs {
			if err == nil || !strings.Contains(err.Error(), "no gradient was ready in this step for b") {
				t.Errorf("stage %d, rank %d: %v", stage, rank, err)
			}
		}
	}
}
