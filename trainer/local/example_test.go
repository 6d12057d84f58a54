package local_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
	"peermesh/trainer/compress"
	"peermesh/trainer/local"
)

// Two ranks look for the least of their mean loss, (x−1)² on one and (x−3)² on the other.
// They send eight bits an element, every tenth step.
func Example() {
	train := func(ctx context.Context, g *ops.Group) (float64, error) {
		x, grad := []float64{0}, []float64{0}
		params := []*trainer.Param{{Name: "x", Value: tensor.Of(x), Grad: tensor.Of(grad)}}
		inner, err := trainer.NewSGD(params, trainer.SGDConfig{LR: 0.02})
		if err != nil {
			return 0, err
		}
		replica, err := local.New(local.DiLoCo{Every: 10, Momentum: 0.5, Codec: compress.Int8(0)}, params)
		if err != nil {
			return 0, err
		}
		if err := replica.Begin(ctx, g); err != nil {
			return 0, err
		}
		for range 300 {
			grad[0] = 2 * (x[0] - float64(1+2*g.Rank()))
			if err := errors.Join(inner.Step(), replica.Step()); err != nil {
				return 0, err
			}
		}
		err = replica.Finish()
		return x[0], err
	}
	var wg sync.WaitGroup
	results, errs := make([]float64, 2), make([]error, 2)
	for rank, w := range memnet.New(2) {
		wg.Go(func() {
			if results[rank], errs[rank] = train(context.Background(), ops.NewGroup(w, ops.Config{})); errs[rank] != nil {
				w.End(errs[rank])
			}
		})
	}
	wg.Wait()
	fmt.Printf("%.2f, the same on both: %v; %v\n", results[0], results[0] == results[1], errors.Join(errs...))
	// Output: 2.00, the same on both: true; <nil>
}
