package layers_test

import (
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
	"peermesh/trainer/nn/layers"
)

// Ranks whose batches differ in length, or that have none, learn what a single process does:
// with four, some differ by one, and some have no samples.
func TestUnevenRanksLearnAsOne(t *testing.T) {
	uneven := lesson{lengths: []int{24, 7, 3, 10, 2}, weigh: true}
	alone, _ := world(t, 1, uneven)
	for _, ranks := range []int{2, 4} {
		nets, _ := world(t, ranks, uneven)
		for _, n := range nets {
			same(t, alone[0].Params(), n.Params())
			same(t, alone[0].Buffers(), n.Buffers())
		}
	}
}

// Any layer takes an empty batch, and its gradients are zeros.
func TestEmptyBatch(t *testing.T) {
	for name, c := range map[string]struct {
		in   layers.Shape
		root layers.Layer
		loss layers.Loss
	}{
		"images": {layers.Shape{2, 6, 6}, layers.Sequential{&layers.Conv2d{Out: 3, Kernel: 3, Padding: 1}, &layers.ReLU{},
			&layers.MaxPool2d{Kernel: 2}, &layers.Dropout{P: 0.5, Channel: true},
			&layers.Residual{Body: &layers.Conv2d{Out: 3, Kernel: 3, Padding: 1}}, &layers.AvgPool2d{Kernel: 2},
			&layers.GlobalAvgPool2d{}, &layers.Linear{Out: 2}}, &layers.MSE{}},
		"sequences": {layers.Shape{5}, layers.Sequential{&layers.Embedding{Rows: 9, Width: 8}, &layers.Position{}, &layers.LayerNorm{},
			&layers.SelfAttention{Heads: 2}, &layers.GELU{}, &layers.Dropout{P: 0.1}, &layers.Linear{Out: 9}}, &layers.CrossEntropy{}},
		"vectors": {layers.Shape{2, 3, 4}, layers.Sequential{layers.Flatten{}, &layers.Linear{Out: 3}}, &layers.CrossEntropy{}},
	} {
		t.Run(name, func(t *testing.T) {
			net := must(layers.New(layers.Config{Threads: 2}, c.in, c.root, c.loss))
			if _, err := net.ForwardBackward(t.Context(), layers.Batch{}, nil); err == nil {
				t.Fatal("a rank on its own has taken a step of no samples")
			}
			net.Synchronize(ops.NewGroup(memnet.New(2)[0], ops.Config{}))
			for _, p := range net.Params() {
				g, _ := tensor.Data[float32](p.Grad)
				g[0] = 1
			}
			ready := 0
			loss, err := net.ForwardBackward(t.Context(), layers.Batch{}, func(int) { ready++ })
			if err != nil || loss != 0 || ready != len(net.Params()) {
				t.Fatalf("loss %v, %d gradients of %d, %v", loss, ready, len(net.Params()), err)
			}
			for _, p := range net.Params() {
				g, _ := tensor.Data[float32](p.Grad)
				for _, v := range g {
					if v != 0 {
						t.Fatalf("%s has a gradient of %v", p.Name, v)
					}
				}
			}
		})
	}
}
