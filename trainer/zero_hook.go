package trainer

import "peermesh/ops/tensor"

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
	b.work = &Later{First: z.hook.Reduce(z.ctx, z.g, z.public(k)), Then: func() error {
		copyElements(b.mine, b.own(z.g.Rank()))
		return nil
	}}
}

// public is a bucket as a hook sees it.
func (z *ZeRO) public(k int) Bucket {
	b := z.buckets[k]
	p := Bucket{Index: k, Last: k == len(z.buckets)-1, Data: b.flat.Slice(0, b.len)}
	for _, i := range b.params {
		p.Params = append(p.Params, z.params[i])
		part, err := b.flat.Slice(z.at[i].lo, z.at[i].hi).Reshape(z.params[i].Grad.Shape()...)
		if err != nil {
			panic("trainer: " + err.Error()) // the place was made for it
		}
		p.Parts = append(p.Parts, part)
	}
	return p
}

// own is a rank's part of the bucket.
func (b *zeroBucket) own(rank int) tensor.Tensor { return b.flat.Slice(rank*b.part, (rank+1)*b.part) }
