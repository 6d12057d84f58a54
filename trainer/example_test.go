package trainer_test

import (
	"context"
	"fmt"
	"sync"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
)

// A line is the smallest of models: y = slope·x + offset, under a squared error.
type line struct{ slope, offset []float64 } // each with its gradient behind it

func newLine() *line { return &line{make([]float64, 2), make([]float64, 2)} }

func (l *line) Params() []*trainer.Param {
	param := func(name string, x []float64) *trainer.Param {
		return &trainer.Param{Name: name, Value: tensor.Of(x[:1]), Grad: tensor.Of(x[1:])}
	}
	return []*trainer.Param{param("slope", l.slope), param("offset", l.offset)}
}

// ForwardBackward takes a batch of samples x, whose truth is 3x − 1.
func (l *line) ForwardBackward(_ context.Context, batch []float64, ready func(i int)) (loss float64, err error) {
	l.slope[1], l.offset[1] = 0, 0
	n := float64(len(batch))
	for _, x := range batch {
		wrong := l.slope[0]*x + l.offset[0] - (3*x - 1)
		loss += wrong * wrong / n
		l.slope[1] += 2 * wrong * x / n
		l.offset[1] += 2 * wrong / n
	}
	ready(1) // the last parameter is final first
	ready(0)
	return loss, nil
}

// train is what every rank runs. It returns its model, and the model's hash.
func train(ctx context.Context, g *ops.Group) (*line, [32]byte, error) {
	const epochs = 30
	var none [32]byte
	model := newLine()
	sampler, err := trainer.NewDistributedSampler(64, g.Size(), g.Rank(), trainer.SamplerConfig{Shuffle: true})
	if err != nil {
		return nil, none, err
	}
	ddp, err := trainer.NewDDP(ctx, g, model.Params(), trainer.DDPConfig{})
	if err != nil {
		return nil, none, err
	}
	optimizer, err := trainer.NewSGD(model.Params(), trainer.SGDConfig{LR: 0.5, Momentum: 0.5})
	if err != nil {
		return nil, none, err
	}
	schedule, err := trainer.NewSchedule(optimizer, trainer.CosineAnnealing{Steps: epochs, Min: 0.1})
	if err != nil {
		return nil, none, err
	}
	for epoch := range epochs {
		sampler.SetEpoch(epoch)
		for indices := range trainer.Batches(sampler.Indices(), 4, true) {
			var batch []float64
			for _, i := range indices {
				batch = append(batch, float64(i)/64)
			}
			if _, err := model.ForwardBackward(ctx, batch, ddp.Ready); err != nil {
				return nil, none, err
			}
			if err := ddp.Wait(); err != nil {
				return nil, none, err
			}
			if err := optimizer.Step(); err != nil {
				return nil, none, err
			}
		}
		schedule.Step()
	}
	hash, err := trainer.Hash(model.Params())
	return model, hash, err
}

// Four ranks fit a line to 64 samples, 16 each. Here they are goroutines on a
// world in memory; over a mesh, train is the same.
func Example() {
	const n = 4
	var lines [n]*line
	var hashes [n][32]byte
	var errs [n]error
	var ranks sync.WaitGroup
	for rank, w := range memnet.New(n) {
		ranks.Go(func() {
			lines[rank], hashes[rank], errs[rank] = train(context.Background(), ops.NewGroup(w, ops.Config{}))
		})
	}
	ranks.Wait()
	for rank := range n {
		if errs[rank] != nil {
			fmt.Println("rank", rank, "failed:", errs[rank])
			return
		}
		fmt.Printf("rank %d: y = %.3fx %+.3f, as on rank 0: %v\n",
			rank, lines[rank].slope[0], lines[rank].offset[0], hashes[rank] == hashes[0])
	}
	// Output:
	// rank 0: y = 3.000x -1.000, as on rank 0: true
	// rank 1: y = 3.000x -1.000, as on rank 0: true
	// rank 2: y = 3.000x -1.000, as on rank 0: true
	// rank 3: y = 3.000x -1.000, as on rank 0: true
}
