package fit

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"peermesh/trainer"
	"peermesh/trainer/internal/finite"
)

// sick has a loss and a gradient that are not finite, in its third batch.
type sick struct {
	*wave
	loss, grad float64
}

func (m sick) ForwardBackward(ctx context.Context, batch []float64, ready func(i int)) (float64, error) {
	loss, err := m.wave.ForwardBackward(ctx, batch, func(i int) {
		if i == 1 && m.calls == 3 {
			m.bias[0] += m.grad
		}
		ready(i)
	})
	if m.calls == 3 {
		loss += m.loss
	}
	return loss, err
}

// stages has change in a run of three ranks, of a DDP and of both of ZeRO's ways.
func stages(t *testing.T, change func(rank int, tr *Trainer[[]float64]), check func(stage int, errs []error)) {
	t.Helper()
	for _, stage := range []int{0, 1, 2} {
		_, errs := fits(t, 3, func(rank int, tr *Trainer[[]float64]) {
			if stage > 0 {
				tr.ZeRO = &trainer.ZeROConfig{Stage: stage}
			}
			change(rank, tr)
		})
		check(stage, errs)
	}
}

// What clipping finds is named on all ranks alike: the parameter, and the ranks whose loss it was.
func TestClipNames(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		loss, grad float64
		says       string
	}{
		{nan, nan, `fit: trainer: clip: the gradients have a norm of NaN: that of "b" is the first that is not finite; the loss is not finite on rank 1`},
		{0, math.Inf(1), `fit: trainer: clip: the gradients have a norm of +Inf: that of "b" is the first that is not finite; the loss is finite on all ranks`},
		{0, 1e200, `fit: trainer: clip: the gradients have a norm of +Inf; the loss is finite on all ranks`},
	} {
		stages(t, func(rank int, tr *Trainer[[]float64]) {
			tr.Clip = 1
			if rank == 1 {
				tr.Model = sick{tr.Model.(*wave), c.loss, c.grad}
			}
		}, func(stage int, errs []error) {
			for rank, err := range errs {
				if e, ok := errors.AsType[*trainer.NormError](err); !ok || err.Error() != c.says || finite.Number(e.Norm) {
					t.Errorf("stage %d, rank %d: %v, want %s", stage, rank, err, c.says)
				}
			}
		})
	}
}

// A step that a Scaler skips says nothing of the norm, and one that is taken does.
func TestGradientNormScaled(t *testing.T) {
	for _, short := range []bool{true, false} {
		var log record
		runs := make([]*Run, 3)
		stages(t, func(rank int, tr *Trainer[[]float64]) {
			tr.LogEvery = 1
			tr.Callbacks = []Callback{&GradientNorm{Limit: 100}, &keepRun{to: &runs[rank]}}
			if rank == 0 {
				log = record{}
				tr.Loggers = []Logger{&log}
			}
			if short { // of which the first gradients are too large
				tr.Scaler, tr.DDP.Hook = &trainer.ScalerConfig{Initial: 1 << 20}, trainer.Float16
			} else if rank == 1 {
				tr.Model = sick{tr.Model.(*wave), 0, math.NaN()}
			}
		}, func(stage int, errs []error) {
			none(t, errs)
			first, last := log.value(1, "grad_norm"), log.value(21, "grad_norm")
			for rank, r := range runs {
				why, steps := r.Stopped(), r.Progress().Step
				switch {
				case short && (why != "" || steps != 21 || finite.Number(first) || !finite.Number(last)):
					t.Errorf("stage %d, rank %d: after %d steps, with norms from %v to %v: %q", stage, rank, steps, first, last, why)
				case !short && (steps != 4 || !strings.HasSuffix(why, `norm of NaN, above 100: that of "b" is the first that is not finite`)):
					t.Errorf("stage %d, rank %d: after %d steps: %q", stage, rank, steps, why)
				}
			}
		})
	}
}
