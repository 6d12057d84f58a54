package main

import (
	"context"
	"fmt"
	"os"

	"peermesh/trainer/mnist"
	"peermesh/trainer/nn/layers"
)

// places are where Debian's package and the data set's own repository have it.
var places = []string{mnist.DebianFashion, "fashion-mnist/data/fashion"}

// load reads Fashion-MNIST from a folder, or finds it.
func load(ctx context.Context, dir string) (*mnist.Data, error) {
	if dir != "" {
		return mnist.Load(ctx, mnist.Config{Dir: dir})
	}
	for _, dir := range places {
		if _, err := os.Stat(dir); err == nil {
			return mnist.Load(ctx, mnist.Config{Dir: dir})
		}
	}
	return nil, fmt.Errorf("no Fashion-MNIST in %v: install Debian's package dataset-fashion-mnist, "+
		"or clone https://github.com/zalandoresearch/fashion-mnist here, or say -data FOLDER", places)
}

// The mean and deviation of the training set's pixels.
const mean, deviation = 0.2860, 0.3530

// A filler makes batches, in memory that it uses again.
type filler struct {
	batch  layers.Batch
	labels []uint8
}

func (f *filler) fill(s *mnist.Set, indices []int) layers.Batch {
	n := len(indices)
	if cap(f.labels) < n {
		f.batch = layers.Batch{X: make([]float32, n*mnist.Pixels), Labels: make([]int32, n)}
		f.labels = make([]uint8, n)
	}
	s.Fill(f.batch.X, f.labels, indices, mean, deviation)
	for i, v := range f.labels[:n] {
		f.batch.Labels[i] = int32(v)
	}
	return layers.Batch{X: f.batch.X[:n*mnist.Pixels], Labels: f.batch.Labels[:n]}
}
