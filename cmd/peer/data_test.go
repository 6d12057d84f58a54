package main

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"peermesh/trainer/mnist"
)

// digits are how many images the tests' own data set has.
const (
	trainDigits = 256
	testDigits  = 50
)

// writeDigits makes a data set in MNIST's form that is as easy as can be: a
// class is a bright block at a place of its own, in noise.
func writeDigits(t *testing.T) (dir string) {
	t.Helper()
	return writeSomeDigits(t, trainDigits, testDigits)
}

func writeSomeDigits(t *testing.T, train, test int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	rng := rand.New(rand.NewPCG(1, 2))
	for i, half := range []string{"train", "t10k"} { // always in this order: they draw from one rng
		n := []int{train, test}[i]
		images := idx(n, mnist.Side, mnist.Side)
		labels := idx(n)
		for range n {
			class := rng.IntN(mnist.Classes)
			labels = append(labels, byte(class))
			images = append(images, digit(rng, class)...)
		}
		write(t, filepath.Join(dir, half+"-images-idx3-ubyte"), images)
		write(t, filepath.Join(dir, half+"-labels-idx1-ubyte"), labels)
	}
	return dir
}

// idx is the header of an IDX file of bytes.
func idx(sizes ...int) []byte {
	header := []byte{0, 0, 8, byte(len(sizes))}
	for _, n := range sizes {
		header = binary.BigEndian.AppendUint32(header, uint32(n))
	}
	return header
}

// digit draws one image.
func digit(rng *rand.Rand, class int) []byte {
	image := make([]byte, mnist.Pixels)
	for i := range image {
		image[i] = byte(rng.IntN(64))
		row, column := i/mnist.Side, i%mnist.Side
		if row/14 == class/5 && column/5 == class%5 {
			image[i] += 160
		}
	}
	return image
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
