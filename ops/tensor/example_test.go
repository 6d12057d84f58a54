package tensor_test

import (
	"fmt"

	"peermesh/ops/tensor"
)

// A receiver folds a message into its elements as the bytes come in.
func Example() {
	gradient := []float32{1, 2, 3, 4, 5, 6}
	x := tensor.Of(gradient) // shares the elements

	message := tensor.Of([]float32{10, 20, 30})
	p, _ := message.View(0, message.Bytes()) // as a transport would lend it

	half := x.Slice(3, 6)
	if err := half.ReduceAt(p, 0, tensor.Sum); err != nil {
		fmt.Println(err)
	}
	fmt.Println(half, gradient)

	// A message that does not fit moves nothing.
	fmt.Println(half.ReduceAt(p, 4, tensor.Sum))
	// Output:
	// float32[3] [1 2 3 14 25 36]
	// tensor: 12 bytes at 4 are out of range of 12 bytes
}

func ExampleTensor_Reshape() {
	x := tensor.New(tensor.Float64, 2, 3)
	y, err := x.Reshape(3, 2)
	fmt.Println(x, y, err)
	_, err = x.Reshape(4, 2)
	fmt.Println(err)
	// Output:
	// float64[2 3] float64[3 2] <nil>
	// tensor: reshape of float64[2 3] to [4 2], of 8 elements
}

func ExampleData() {
	x := tensor.Of([]int32{1, 2, 3})
	if v, ok := tensor.Data[int32](x); ok {
		v[0] = 7
	}
	v, _ := tensor.Data[int32](x)
	fmt.Println(v)
	// Output: [7 2 3]
}
