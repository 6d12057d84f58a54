package trainer_test

import (
	"context"
	"fmt"
	"sync"

	"peermesh/ops"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
)

// A lazyLine is a line that asks for each parameter before it uses it.
type lazyLine struct {
	*line
	need func(i int) error
}

func (l lazyLine) ForwardBackward(ctx context.Context, batch []float64, ready func(i int)) (float64, error) {
	for i := range l.Params() { // a network asks layer by layer, as it comes to them
		if err := l.need(i); err != nil {
			return 0, err
		}
	}
	return l.line.ForwardBackward(ctx, batch, ready)
}

// trainLazily takes steps with no Wait between them.
func trainLazily(ctx context.Context, g *ops.Group) (*line, error) {
	model := newLine()
	params := model.Params()
	optimizers := make([]trainer.Optimizer, len(params)) // one for each parameter
	for i := range params {
		var err error
		if optimizers[i], err = trainer.NewSGD(params[i:i+1], trainer.SGDConfig{LR: 0.5}); err != nil {
			return nil, err
		}
	}
	ddp, err := trainer.NewDDP(ctx, g, params, trainer.DDPConfig{
		Update: func(i int) error { return optimizers[i].Step() },
	})
	if err != nil {
		return nil, err
	}
	lazy := lazyLine{model, ddp.Need}
	for range 200 {
		batch := []float64{float64(g.Rank()), 0.5}
		if _, err := lazy.ForwardBackward(ctx, batch, ddp.Ready); err != nil {
			return nil, err
		}
	}
	return model, ddp.Wait() // the last step's
}

// Gradients travel while the next step's forward pass goes on, up to where it needs them.
func ExampleDDP_Need() {
	var lines [2]*line
	var errs [2]error
	var ranks sync.WaitGroup
	for rank, w := range memnet.New(2) {
		ranks.Go(func() { lines[rank], errs[rank] = trainLazily(context.Background(), ops.NewGroup(w, ops.Config{})) })
	}
	ranks.Wait()
	for rank, l := range lines {
		if errs[rank] != nil {
			fmt.Println("rank", rank, "failed:", errs[rank])
			return
		}
		fmt.Printf("rank %d: y = %.3fx %+.3f\n", rank, l.slope[0], l.offset[0])
	}
	// Output:
	// rank 0: y = 3.000x -1.000
	// rank 1: y = 3.000x -1.000
}
