// Package finite looks for what is infinite or not a number.
package finite

import "peermesh/ops/tensor"

// Number reports whether x is finite.
func Number[T float32 | float64](x T) bool { return x-x == 0 } // of an infinity or a NaN it is a NaN

// All reports whether all of x are finite.
func All[T float32 | float64](x []T) bool {
	for _, v := range x {
		if !Number(v) {
			return false
		}
	}
	return true
}

// Tensor is All of a tensor's elements; those of other types than float32 and float64, or
// outside host memory, are not looked at.
func Tensor(x tensor.Tensor) bool {
	single, _ := tensor.Data[float32](x)
	double, _ := tensor.Data[float64](x)
	return All(single) && All(double)
}
