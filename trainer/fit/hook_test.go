package fit

import (
	"context"
	"slices"
	"strings"
	"testing"

	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/compress"
)

// wide is a wave with one parameter more, a matrix that is worth compressing and whose
// gradient is a function of the step.
type wide struct {
	*wave
	x, g []float64
}

func newWide() *wide {
	m := &wide{wave: newWave(), x: make([]float64, 60), g: make([]float64, 60)}
	value, _ := tensor.Of(m.x).Reshape(10, 6)
	grad, _ := tensor.Of(m.g).Reshape(10, 6)
	m.params = append(m.params, &trainer.Param{Name: "wide", Value: value, Grad: grad})
	return m
}

func (m *wide) ForwardBackward(ctx context.Context, batch []float64, ready func(i int)) (float64, error) {
	for i := range m.g {
		m.g[i] = float64((int64(i)*m.step+int64(i*i))%11) - 5
	}
	ready(2)
	return m.wave.ForwardBackward(ctx, batch, ready)
}

// withHook gives a run a model with a matrix, and a PowerSGD of it without the feedback
// that a process takes along when it ends.
func withHook(t *testing.T, tr *Trainer[[]float64], stage int) *wide {
	m := newWide()
	h, err := compress.NewPowerSGD(m.params, compress.PowerSGDConfig{Start: 3, NoFeedback: true})
	if err != nil {
		t.Fatal(err)
	}
	tr.Model = m
	tr.DDP.Hook = h
	if stage > 0 {
		tr.ZeRO = &trainer.ZeROConfig{Stage: stage}
	}
	return m
}

// A hook's state is a part of the run's: in every mode a run that resumes goes on with the
// matrices and the step that there were, and ends as the run that did not stop.
func TestHookIsResumed(t *testing.T) {
	for _, stage := range []int{0, 1, 2} {
		dir := t.TempDir()
		run := func(steps int64, keep bool) []float64 {
			all := make([]*wide, 2)
			_, errs := fits(t, 2, func(rank int, tr *Trainer[[]float64]) {
				all[rank] = withHook(t, tr, stage)
				tr.Steps = steps
				if keep {
					tr.Checkpoints, tr.Resume = &trainer.Checkpoints{Dir: dir}, true
				}
			})
			none(t, errs)
			if !slices.Equal(all[0].x, all[1].x) {
				t.Fatalf("stage %d: the ranks have parted", stage)
			}
			return all[0].x
		}
		want := run(20, false)
		run(9, true)
		if got := run(20, true); !slices.Equal(got, want) {
			t.Errorf("stage %d: resumed, the run ends at %v, want %v", stage, got[:4], want[:4])
		}
	}
}

// There is one place for a hook.
func TestHookOfZeRO(t *testing.T) {
	_, errs := fits(t, 1, func(_ int, tr *Trainer[[]float64]) {
		tr.ZeRO = &trainer.ZeROConfig{Hook: trainer.Float16}
	})
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "DDP.Hook") {
		t.Error(errs[0])
	}
}
