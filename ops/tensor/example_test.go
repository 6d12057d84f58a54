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

// An average is a sum with a step after it.
func ExampleOp_After() {
	x := []int32{7, -7}
	message := tensor.Of([]int32{8, -8})
	p, _ := message.View(0, message.Bytes())
	if err := tensor.Of(x).ReduceAt(p, 0, tensor.Avg); err != nil {
		fmt.Println(err)
	}
	fmt.Println(x)
	err := tensor.Avg.After(tensor.Of(x), 2)
	fmt.Println(x, err)
	// Output:
	// [15 -15]
	// [7 -7] <nil>
}

func ExampleOp_Check() {
	fmt.Println(tensor.BitXor.Check(tensor.Uint64))
	fmt.Println(tensor.BitXor.Check(tensor.Float32))
	fmt.Println(tensor.PremulSum(0.5).Check(tensor.Int8))
	// Output:
	// <nil>
	// tensor: bxor of float32: it is for integers and bool
	// tensor: premul_sum of int8: the factor 0.5 is not one of its values
}

// A caller's own reduction: the greater magnitude wins.
func ExampleFunc() {
	absmax := tensor.Func("absmax", func(a, b float64) float64 {
		return max(a, -a, b, -b)
	})
	x := []float64{1, -5, 2}
	message := tensor.Of([]float64{-3, 4, 0})
	p, _ := message.View(0, message.Bytes())
	err := tensor.Of(x).ReduceAt(p, 0, absmax)
	fmt.Println(absmax, x, err)
	// Output: func(absmax) [3 5 2] <nil>
}

// Half precision keeps 11 bits, bfloat16 keeps 8 and the range of float32.
func ExampleToF16() {
	fmt.Println(tensor.ToF16(3.14159265), tensor.ToF16(1e6))
	fmt.Println(tensor.ToBF16(3.14159265), tensor.ToBF16(1e6))
	// Output:
	// 3.140625 +Inf
	// 3.140625 999424
}
