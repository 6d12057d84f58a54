package trainer

import "peermesh/ops/tensor"

const (
	// DefaultFirstBucket is small, so that the first all-reduce begins early.
	DefaultFirstBucket = 1 << 20
	// DefaultBucket is large enough that latency does not matter.
	DefaultBucket = 25 << 20
)

// A bucket is gradients that travel together: parameters by index, in the order
// in which they lie in it.
type bucket struct {
	params []int
	dtype  tensor.DType
	len    int // elements
}

// assign deals parameters to buckets as PyTorch does, in an order: at first from
// the last to the first, since that is about how backward finishes them. A bucket
// is full when it has reached its limit, first for the first one; and each holds
// one element type. Parameters without a gradient are in none.
func assign(params []*Param, order []int, first, rest int) []bucket {
	var full []bucket
	open := make(map[tensor.DType]*bucket)
	var types []tensor.DType // of the open ones, by age
	limit := first
	for _, i := range order {
		g := params[i].Grad
		if g.Memory() == nil {
			continue
		}
		b := open[g.DType()]
		if b == nil {
			b = &bucket{dtype: g.DType()}
			open[g.DType()] = b
			types = append(types, g.DType())
		}
		b.params = append(b.params, i)
		b.len += g.Len()
		if b.len*b.dtype.Size() >= limit {
			full = append(full, *b)
			delete(open, g.DType())
			limit = rest
		}
	}
	for _, t := range types {
		if b := open[t]; b != nil {
			full = append(full, *b)
			delete(open, t)
		}
	}
	return full
}
