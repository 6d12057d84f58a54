package npy_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"peermesh/ops/tensor"
	"peermesh/trainer/data"
	"peermesh/trainer/data/npy"
)

// An array is written as NumPy would, and read as batches of its rows.
func Example() {
	x, err := tensor.Of([]float32{0, 1, 2, 3, 4, 5}).Reshape(3, 2)
	if err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	if err := npy.Write(&file, x); err != nil {
		log.Fatal(err)
	}

	a, err := npy.New(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.DType(), a.Shape())
	rows, err := npy.Rows[float32](a)
	if err != nil {
		log.Fatal(err)
	}
	loader, err := data.NewLoader(rows, data.Config[[]float32, []float32]{Batch: 2, Collate: data.Rows[float32]})
	if err != nil {
		log.Fatal(err)
	}
	defer loader.Close()
	for batch, err := range loader.Epoch(context.Background()) {
		fmt.Println(batch, err)
	}
	// Output:
	// float32 [3 2]
	// [0 1 2 3] <nil>
	// [4 5] <nil>
}
