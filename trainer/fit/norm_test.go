package fit

import (
	"context"
	"math"
	"strings"
	"testing"

	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
	"peermesh/trainer/nn/layers"
)

// normNet is a small network with a batch norm.
func normNet() (*layers.Net, error) {
	return layers.New(layers.Config{Seed: 2}, layers.Shape{1, 4, 4}, layers.Sequential{
		&layers.Conv2d{Out: 3, Kernel: 3, Padding: 1, NoBias: true}, &layers.BatchNorm2d{}, &layers.ReLU{},
		&layers.GlobalAvgPool2d{}, &layers.Linear{Out: 2}}, &layers.CrossEntropy{})
}

// images are of noise that is brighter for the second class.
func images(n int, c trainer.ElasticConfig) Samples[layers.Batch] {
	return Samples[layers.Batch]{N: n, Deal: c, Load: func(_ context.Context, indices []int) (layers.Batch, error) {
		var b layers.Batch
		for _, i := range indices {
			for j := range 16 {
				b.X = append(b.X, float32(math.Sin(float64(31*i+7*j))+float64(i%2)))
			}
			b.Labels = append(b.Labels, int32(i%2))
		}
		return b, nil
	}}
}

// With SyncBatchNorm ranks train what one does, also in steps that have no samples for some.
func TestSyncBatchNorm(t *testing.T) {
	for _, accumulate := range []int{1, 2} {
		var alone []float32
		for _, n := range []int{1, 2, 3} {
			all := make([][]float32, n)
			errs := ranks(t, n, func(rank int, w *memnet.World) error {
				net, err := normNet()
				if err != nil {
					return err
				}
				tr := &Trainer[layers.Batch]{
					Model: net, Optimizer: sgd, Epochs: 3, Accumulate: accumulate, SyncBatchNorm: true,
					Train: images(19, trainer.ElasticConfig{Shuffle: true, Global: 6}), // the last step has one
				}
				if err := tr.Fit(context.Background(), w); err != nil {
					return err
				}
				for _, p := range append(net.Params(), net.Buffers()[:2]...) {
					v, _ := tensor.Data[float32](p.Value)
					all[rank] = append(all[rank], v...)
				}
				return nil
			})
			none(t, errs)
			if n == 1 {
				alone = all[0]
			}
			for rank, v := range all {
				for i := range v {
					if math.Abs(float64(v[i]-alone[i])) > 1e-5 {
						t.Fatalf("%d batches a step, rank %d of %d: element %d is %v, alone %v", accumulate, rank, n, i, v[i], alone[i])
					}
				}
			}
		}
	}
}

func TestSyncBatchNormRefused(t *testing.T) {
	_, errs := fits(t, 1, func(_ int, tr *Trainer[[]float64]) { tr.SyncBatchNorm = true })
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "Synchronize") {
		t.Errorf("got %v", errs[0])
	}
}
