package trainer

import (
	"fmt"

	"peermesh/ops/tensor"
)

// reduce begins to have this rank's part of a bucket averaged. A hook sums the whole of
// it, as what hooks send is no sum of parts: PowerSGD's matrices are of whole gradients,
// and a codec's feedback is of all that this rank has. That is twice the hook's bytes of a
// reduce-scatter, so it pays from half the bytes of an element on.
func (z *ZeRO) reduce(k int) {
	b := z.buckets[k]
	zero(b.flat.Slice(b.len, b.flat.Len()))
	if z.hook == nil {
		b.work = z.g.ReduceScatter(z.ctx, b.mine, b.flat, tensor.PremulSum(z.weight))
		return
	}
	scale(b.flat, z.weight)
	work := z.hook.Reduce(z.ctx, z.g, z.public(k))
	if err := stillborn(work); err != nil {
		z.err, b.work = fmt.Errorf("trainer: averaging gradients: %w", err), Failed(nil)
		return
	}
	b.work = &Later{First: work, Then: func() error {
		copyElements(b.mine, b.own(z.g.Rank()))
		return nil
	}}
}

// public is a bucket as a hook sees it.
func (z *ZeRO) public(k int) Bucket {
	b := z.buckets[k]
	return publicBucket(k, len(z.buckets), b.flat.Slice(0, b.len), b.params, z.params, z.at)
}

// own is a rank's part of the bucket.
func (b *zeroBucket) own(rank int) tensor.Tensor { return b.flat.Slice(rank*b.part, (rank+1)*b.part) }

// Err is as in a DDP, at stage 2.
func (z *ZeRO) Err() error { return z.err }
