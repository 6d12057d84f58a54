package data_test

import (
	"testing"

	"peermesh/trainer"
	"peermesh/trainer/data"
	"peermesh/trainer/mnist"
	"peermesh/trainer/nn"
)

// An epoch of 6,400 images in batches of 64: loaded by a worker, and filled in by
// the loop itself, which is all that a loader can save.
func BenchmarkImages(b *testing.B) {
	const n, batch = 6400, 64
	set := &mnist.Set{Images: make([]byte, n*mnist.Pixels), Labels: make([]byte, n)}
	sampler, err := trainer.NewRandomSampler(n, trainer.RandomConfig{})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("loader", func(b *testing.B) {
		l, err := data.NewLoader(set, data.Config[mnist.Sample, nn.Batch]{Sampler: sampler, Batch: batch, Collate: images(b)})
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		b.ReportAllocs()
		for b.Loop() {
			for _, err := range l.Epoch(b.Context()) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("loop", func(b *testing.B) {
		x, y := make([]float32, batch*mnist.Pixels), make([]uint8, batch)
		b.ReportAllocs()
		for b.Loop() {
			for indices := range trainer.Batches(sampler.Indices(), batch, true) {
				set.Fill(x, y, indices, 0.1307, 0.3081)
			}
		}
	})
}

func images(b *testing.B) func(*data.Buffer, []data.Sample[mnist.Sample]) (nn.Batch, error) {
	normalizer, err := data.NewNormalizer([]float32{0.1307}, []float32{0.3081})
	if err != nil {
		b.Fatal(err)
	}
	return func(b *data.Buffer, samples []data.Sample[mnist.Sample]) (out nn.Batch, err error) {
		if out.X, err = data.Take[float32](b, len(samples)*mnist.Pixels); err != nil {
			return out, err
		}
		out.Y, err = data.Take[uint8](b, len(samples))
		for k, s := range samples {
			normalizer.Apply(out.X[k*mnist.Pixels:][:mnist.Pixels], s.Value.Image)
			out.Y[k] = s.Value.Label
		}
		return out, err
	}
}
