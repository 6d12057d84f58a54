package fit

import (
	"context"
	"fmt"
	"testing"

	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
	"peermesh/trainer/logger"
	"peermesh/trainer/nn"
)

// What package logger has can be used here.
var _ = []Logger{&logger.Console{}, &logger.JSONLines{}, (*logger.CSV)(nil), (*logger.TensorBoard)(nil)}

// A network of package nn, with its dropout and with gradients as views of the buckets,
// stays the same on all ranks to the last bit.
func TestNetwork(t *testing.T) {
	hashes := make([][32]byte, 2)
	errs := make(chan error, 2)
	for rank, w := range memnet.New(2) { // in real time, as nn has threads of its own
		go func() {
			errs <- func() error {
				model, err := nn.NewTutorial(nn.Config{Seed: 1, Threads: 1})
				if err != nil {
					return err
				}
				tr := &Trainer[nn.Batch]{
					Model: model, Optimizer: sgd, Steps: 3, Accumulate: 2,
					DDP: trainer.DDPConfig{Views: true},
					Train: Samples[nn.Batch]{N: 16, Deal: trainer.ElasticConfig{Batch: 2}, Load: func(_ context.Context, indices []int) (nn.Batch, error) {
						b := nn.Batch{X: make([]float32, len(indices)*28*28), Y: make([]uint8, len(indices))}
						for k, i := range indices {
							b.X[k*28*28+i], b.Y[k] = 1, uint8(i%10)
						}
						return b, nil
					}},
				}
				if err := tr.Fit(context.Background(), w); err != nil {
					return err
				}
				hashes[rank], err = trainer.Hash(model.Params())
				return err
			}()
		}()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if hashes[0] != hashes[1] {
		t.Error("the ranks have parted")
	}
}

// Running means are rank 0's on all ranks, in every mode, and part of the state.
func TestBuffers(t *testing.T) {
	for _, stage := range []int{0, 1, 2} {
		means := make([][]float64, 3)
		_, errs := fits(t, 3, func(rank int, tr *Trainer[[]float64]) {
			mean := make([]float64, 1)
			means[rank] = mean
			tr.DDP.Buffers = []*trainer.Param{{Name: "mean", Value: tensor.Of(mean)}}
			if stage > 0 {
				tr.ZeRO = &trainer.ZeROConfig{Stage: stage}
			}
			tr.Checkpoints = &trainer.Checkpoints{Dir: t.TempDir()} // which compares all ranks' states
			tr.Model.(*wave).before = func(call int) error {
				mean[0] += float64(rank + call)
				return nil
			}
		})
		none(t, errs)
		if means[0][0] == 0 || means[1][0] != means[0][0] || means[2][0] != means[0][0] {
			t.Errorf("%s: %v", fmt.Sprint("stage ", stage), means)
		}
	}
}

// normed is a wave with a running mean, which it shows.
type normed struct {
	*wave
	mean []float64
}

func (m *normed) Buffers() []*trainer.Param {
	return []*trainer.Param{{Name: "mean", Value: tensor.Of(m.mean)}}
}

// What a model says that it has is kept alike, and saved: a run that resumes goes on with it.
func TestModelsBuffers(t *testing.T) {
	dir := t.TempDir()
	for _, epochs := range []int64{2, 3} {
		means := make([][]float64, 2)
		_, errs := fits(t, 2, func(rank int, tr *Trainer[[]float64]) {
			m := &normed{tr.Model.(*wave), make([]float64, 1)}
			means[rank] = m.mean
			m.before = func(int) error { m.mean[0] += float64(1 + rank); return nil }
			tr.Model, tr.Epochs = m, epochs
			tr.Checkpoints, tr.Resume = &trainer.Checkpoints{Dir: dir}, true
		})
		none(t, errs)
		for rank, mean := range means { // 7 steps an epoch, in each of which rank 0 adds 1
			if mean[0] != float64(7*epochs) {
				t.Errorf("after %d epochs, on rank %d: %v", epochs, rank, mean)
			}
		}
	}
}

// The rate falls when the metric that is monitored does not improve, and a metric that
// nobody has is an error.
func TestPlateau(t *testing.T) {
	var r *Run
	_, errs := fits(t, 1, func(_ int, tr *Trainer[[]float64]) {
		scripted(tr, 3, 2, 2, 2, 1)
		tr.Plateau = &trainer.PlateauConfig{Patience: -1, Factor: 0.5}
		tr.Callbacks = []Callback{&keepRun{to: &r}}
	})
	none(t, errs)
	if rate := r.Optimizer().Rates()[0]; rate != 0.05/4 {
		t.Errorf("the rate is %v", rate)
	}
	_, errs = fits(t, 1, func(_ int, tr *Trainer[[]float64]) {
		tr.Plateau, tr.Monitor = &trainer.PlateauConfig{}, "val/other"
	})
	if errs[0] == nil {
		t.Error("nobody misses the metric")
	}
}

// heads is a model with two parameters, of which odd steps use one.
type heads struct {
	*wave
	step int64
}

func (m *heads) SetStep(step int64) { m.step = step }

func (m *heads) ForwardBackward(_ context.Context, _ []float64, ready func(i int)) (float64, error) {
	m.grad[0], m.bias[0] = 1, 1
	if m.step%2 == 0 {
		ready(1)
	}
	ready(0)
	return 0, nil
}

// A parameter that no rank has used stays where it is: an earlier gradient, momentum or decay
// does not move it.
func TestUnusedStays(t *testing.T) {
	for _, scaler := range []*trainer.ScalerConfig{nil, {}} {
		var models []*heads
		_, errs := fits(t, 1, func(_ int, tr *Trainer[[]float64]) {
			m := &heads{wave: tr.Model.(*wave)}
			models = append(models, m)
			tr.Model, tr.Steps, tr.Clip, tr.Scaler = m, 4, 1e6, scaler
			tr.DDP.FindUnused = true
			tr.Optimizer = func(p []*trainer.Param) (trainer.Optimizer, error) {
				return trainer.NewSGD(p, trainer.SGDConfig{LR: 1})
			}
		})
		none(t, errs)
		if m := models[0]; m.w[0] != -4 || m.b[0] != -2 {
			t.Errorf("after four steps %v and two %v", m.w[0], m.b[0])
		}
	}
}
