package trainer

import (
	"fmt"

	"peermesh/ops/tensor"
)

const (
	// DefaultFirstBucket is small, so that the first all-reduce begins early.
	DefaultFirstBucket = 1 << 20
	// DefaultBucket is large enough that latency does not matter.
	DefaultBucket = 25 << 20
	// DefaultLastBucket is so small that it takes little but a message's latency on a long link,
	// and what stays behind when it is cut off so large that this is worth a message more.
	DefaultLastBucket = 32 << 10
)

// size puts the defaults for the sizes of buckets that are zero.
func (c *DDPConfig) size() error {
	if c.FirstBucket < 0 || c.Bucket < 0 || c.LastBucket < 0 {
		return fmt.Errorf("trainer: DDPConfig: bucket sizes %d, %d and %d: want bytes, or zero for the default", c.FirstBucket, c.Bucket, c.LastBucket)
	}
	if c.FirstBucket == 0 {
		c.FirstBucket = DefaultFirstBucket
	}
	if c.Bucket == 0 {
		c.Bucket = DefaultBucket
	}
	if c.LastBucket == 0 && c.Update != nil && c.Abreast {
		c.LastBucket = DefaultLastBucket
	}
	return nil
}

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

// cutLast makes a bucket of its own of the end of the last one, if that has more than so many
// bytes; see DDPConfig.LastBucket. Zero cuts nothing.
func cutLast(all []bucket, params []*Param, most int) []bucket {
	if most == 0 || len(all) == 0 {
		return all
	}
	b := &all[len(all)-1]
	if b.len*b.dtype.Size() <= most {
		return all
	}
	k := len(b.params) - 1
	n := params[b.params[k]].Grad.Len()
	for k > 0 {
		more := n + params[b.params[k-1]].Grad.Len()
		if more*b.dtype.Size() > most {
			break
		}
		k, n = k-1, more
	}
	if k == 0 { // one parameter
		return all
	}
	last := bucket{b.params[k:], b.dtype, n}
	b.params, b.len = b.params[:k:k], b.len-n
	return append(all, last)
}
