package fit_test

import (
	"context"
	"fmt"
	"sync"

	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
	"peermesh/trainer/fit"
	"peermesh/trainer/local"
)

// A line is the smallest of models: y = slope·x + offset, under a squared error. Its
// truth is 3x − 1.
type line struct {
	x, grad []float64 // slope and offset
	params  []*trainer.Param
}

func newLine() *line {
	l := &line{x: make([]float64, 2), grad: make([]float64, 2)}
	l.params = []*trainer.Param{{Name: "line", Value: tensor.Of(l.x), Grad: tensor.Of(l.grad)}}
	return l
}

func (l *line) Params() []*trainer.Param { return l.params }

func (l *line) ForwardBackward(_ context.Context, batch []float64, ready func(i int)) (loss float64, err error) {
	clear(l.grad)
	for _, x := range batch {
		wrong := l.x[0]*x + l.x[1] - (3*x - 1)
		loss += wrong * wrong / float64(len(batch))
		l.grad[0] += 2 * wrong * x / float64(len(batch))
		l.grad[1] += 2 * wrong / float64(len(batch))
	}
	ready(0)
	return loss, nil
}

func (l *line) evaluate(_ context.Context, batch []float64) (fit.Metrics, error) {
	var loss float64
	for _, x := range batch {
		wrong := l.x[0]*x + l.x[1] - (3*x - 1)
		loss += wrong * wrong / float64(len(batch))
	}
	return fit.Metrics{"loss": loss}, nil
}

func load(_ context.Context, indices []int) (batch []float64, err error) {
	for _, i := range indices {
		batch = append(batch, float64(i)/64)
	}
	return batch, nil
}

// Two ranks step on their own, and come together every eighth step: DiLoCo, in the same
// ten lines.
func Example_local() {
	var all sync.WaitGroup
	models := []*line{newLine(), newLine()}
	errs := make([]error, 2)
	for rank, world := range memnet.New(2) {
		all.Go(func() {
			run := &fit.Trainer[[]float64]{
				Model: models[rank],
				Optimizer: func(p []*trainer.Param) (trainer.Optimizer, error) {
					return trainer.NewSGD(p, trainer.SGDConfig{LR: 0.5, Momentum: 0.5})
				},
				Train:  fit.Samples[[]float64]{N: 64, Deal: trainer.ElasticConfig{Shuffle: true, Batch: 4}, Load: load},
				Epochs: 60,
				Local:  local.DiLoCo{Every: 8, Momentum: 0.5},
			}
			errs[rank] = run.Fit(context.Background(), world)
		})
	}
	all.Wait()
	for rank, m := range models {
		fmt.Printf("y = %.2fx %+.2f, error: %v\n", m.x[0], m.x[1], errs[rank])
	}
	// Output:
	// y = 3.00x -1.00, error: <nil>
	// y = 3.00x -1.00, error: <nil>
}

// Two ranks train until the validation's loss is small.
func Example() {
	enough := 1e-6
	var all sync.WaitGroup
	said := make([]string, 2)
	for rank, world := range memnet.New(2) {
		all.Go(func() {
			model := newLine()
			run := &fit.Trainer[[]float64]{
				Model: model,
				Optimizer: func(p []*trainer.Param) (trainer.Optimizer, error) {
					return trainer.NewSGD(p, trainer.SGDConfig{LR: 0.5, Momentum: 0.5})
				},
				Train:     fit.Samples[[]float64]{N: 64, Deal: trainer.ElasticConfig{Shuffle: true, Batch: 4}, Load: load},
				Valid:     fit.Samples[[]float64]{N: 64, Deal: trainer.ElasticConfig{Batch: 32}, Load: load},
				Evaluate:  model.evaluate,
				Epochs:    100,
				Callbacks: []fit.Callback{&fit.EarlyStopping{Stop: &enough}},
			}
			err := run.Fit(context.Background(), world)
			said[rank] = fmt.Sprintf("y = %.2fx %+.2f, error: %v", model.x[0], model.x[1], err)
		})
	}
	all.Wait()
	fmt.Println(said[0])
	fmt.Println(said[1])
	// Output:
	// y = 3.00x -1.00, error: <nil>
	// y = 3.00x -1.00, error: <nil>
}
