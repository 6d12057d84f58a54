package cifar_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"peermesh/trainer/data"
	"peermesh/trainer/data/cifar"
)

// Batches of cropped, mirrored and normalised images.
func Example() {
	const images = 4
	file := make([]byte, images*(1+cifar.Bytes)) // in place of a file: four black airplanes
	set, err := cifar.Decode(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		log.Fatal(err)
	}

	type batch struct {
		X []float32
		Y []uint8
	}
	augment := data.Augment{Shape: cifar.Shape, Pad: 4, Flip: true}
	normalizer, err := data.NewNormalizer(cifar.Mean, cifar.Std)
	if err != nil {
		log.Fatal(err)
	}
	loader, err := data.NewLoader(set, data.Config[cifar.Sample, batch]{
		Batch: 2, Workers: 2, Seed: 1,
		Collate: func(b *data.Buffer, samples []data.Sample[cifar.Sample]) (out batch, err error) {
			if out.X, err = data.Take[float32](b, len(samples)*cifar.Bytes); err != nil {
				return out, err
			}
			if out.Y, err = data.Take[uint8](b, len(samples)); err != nil {
				return out, err
			}
			image, err := data.Take[uint8](b, cifar.Bytes)
			for k, s := range samples {
				augment.Apply(image, s.Value.Image, s.Rand())
				normalizer.Apply(out.X[k*cifar.Bytes:][:cifar.Bytes], image)
				out.Y[k] = s.Value.Label
			}
			return out, err
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer loader.Close()
	for b, err := range loader.Epoch(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d numbers from %.3f, %s\n", len(b.X), b.X[0], cifar.Names[b.Y[0]])
	}
	// Output:
	// 6144 numbers from -1.989, airplane
	// 6144 numbers from -1.989, airplane
}
