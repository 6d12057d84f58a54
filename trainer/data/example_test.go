package data_test

import (
	"context"
	"fmt"
	"log"

	"peermesh/trainer"
	"peermesh/trainer/data"
	"peermesh/trainer/mnist"
	"peermesh/trainer/nn"
)

// The batches of rank 1 of two, and a run that goes on in the middle of an epoch.
func Example() {
	set := data.Slice[string]{"a", "b", "c", "d", "e", "f", "g", "h"}
	newLoader := func() *data.Loader[string, []uint8] {
		sampler, err := trainer.NewDistributedSampler(set.Len(), 2, 1, trainer.SamplerConfig{Shuffle: true})
		if err != nil {
			log.Fatal(err)
		}
		loader, err := data.NewLoader(set, data.Config[string, []uint8]{
			Sampler: sampler, Batch: 2, Workers: 2,
			Collate: func(b *data.Buffer, samples []data.Sample[string]) ([]uint8, error) {
				batch, err := data.Take[uint8](b, len(samples))
				for k := range batch {
					batch[k] = samples[k].Value[0]
				}
				return batch, err
			},
		})
		if err != nil {
			log.Fatal(err)
		}
		return loader
	}

	ctx := context.Background()
	loader := newLoader()
	var checkpoint data.Position
	for batch, err := range loader.Epoch(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", batch)
		checkpoint = loader.State()
		break // the process ends here
	}
	loader.Close()

	loader = newLoader()
	defer loader.Close()
	if err := loader.Restore(checkpoint); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		for batch, err := range loader.Epoch(ctx) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Printf("%s\n", batch)
		}
	}
	// Output:
	// ad
	// fg
	// eg
	// da
}

// Batches of images for package nn, normalised by the workers. Memory that is
// pinned for a GPU would go into Config.Memory.
func Example_images() {
	set := &mnist.Set{Images: make([]byte, 3*mnist.Pixels), Labels: []byte{3, 1, 4}}
	normalizer, err := data.NewNormalizer([]float32{0.1307}, []float32{0.3081})
	if err != nil {
		log.Fatal(err)
	}
	loader, err := data.NewLoader(set, data.Config[mnist.Sample, nn.Batch]{
		Batch: 2,
		Collate: func(b *data.Buffer, samples []data.Sample[mnist.Sample]) (out nn.Batch, err error) {
			if out.X, err = data.Take[float32](b, len(samples)*mnist.Pixels); err != nil {
				return out, err
			}
			out.Y, err = data.Take[uint8](b, len(samples))
			for k, s := range samples {
				normalizer.Apply(out.X[k*mnist.Pixels:][:mnist.Pixels], s.Value.Image)
				out.Y[k] = s.Value.Label
			}
			return out, err
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer loader.Close()
	for batch, err := range loader.Epoch(context.Background()) {
		fmt.Println(len(batch.X), batch.X[0], batch.Y, err)
	}
	// Output:
	// 1568 -0.42421296 [3 1] <nil>
	// 784 -0.42421296 [4] <nil>
}

// A text for a model that tells the next byte.
func ExampleWindows() {
	set, err := data.Windows([]byte("go forth"), 4, 0)
	if err != nil {
		log.Fatal(err)
	}
	for i := range set.Len() {
		w, err := set.At(i)
		fmt.Printf("%q %q %v\n", w.X, w.Y, err)
	}
	// Output:
	// "go f" "o fo" <nil>
}

// Nine of ten samples to train on, one to validate.
func ExampleSplit() {
	set := data.Func[int]{N: 10, F: func(i int) (int, error) { return i * i, nil }}
	parts, err := data.Split[int](set, 1, 9, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(parts[0].Len(), parts[1].Len())
	// Output:
	// 9 1
}
