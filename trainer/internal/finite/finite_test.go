package finite

import (
	"math"
	"testing"

	"peermesh/ops/tensor"
)

func TestTensor(t *testing.T) {
	for _, c := range []struct {
		v    float64
		want bool
	}{{0, true}, {-1, true}, {math.SmallestNonzeroFloat64, true}, {math.Inf(1), false}, {math.Inf(-1), false}, {math.NaN(), false}} {
		for i := range 3 {
			single, double := make([]float32, 3), make([]float64, 3)
			single[i], double[i] = float32(c.v), c.v
			if Tensor(tensor.Of(single)) != c.want || Tensor(tensor.Of(double)) != c.want {
				t.Errorf("%v at %d: want %v", c.v, i, c.want)
			}
		}
	}
	if !Tensor(tensor.Tensor{}) || !Tensor(tensor.Of([]int64{1})) {
		t.Error("what has no floats has one that is not finite")
	}
}
