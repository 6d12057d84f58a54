package mnist_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"peermesh/trainer/mnist"
)

// With an empty Config, Load finds or fetches MNIST; here it reads a folder.
func Example() {
	d, err := mnist.Load(context.Background(), mnist.Config{Dir: "/data/mnist"})
	if err != nil {
		log.Fatal(err)
	}
	const batch = 128
	x, y := make([]float32, batch*mnist.Pixels), make([]uint8, batch)
	indices := make([]int, batch) // of a sampler
	d.Train.Fill(x, y, indices, 0.1307, 0.3081)
}

func ExampleSet_Fill() {
	s := &mnist.Set{
		Images: bytes.Repeat([]byte{0, 255}, mnist.Pixels), // two images, striped
		Labels: []byte{4, 7},
	}
	x, y := make([]float32, mnist.Pixels), make([]uint8, 1)
	s.Fill(x, y, []int{1}, 0.5, 0.5)
	fmt.Println(x[:4], y)
	// Output: [-1 1 -1 1] [7]
}

func ExampleDecodeIDX() {
	file := "\x00\x00\x08\x02" + "\x00\x00\x00\x02" + "\x00\x00\x00\x03" + "abcdef"
	x, err := mnist.DecodeIDX(bytes.NewReader([]byte(file)), 1<<20)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v %q\n", x.Shape, x.Data)
	// Output: [2 3] "abcdef"
}
