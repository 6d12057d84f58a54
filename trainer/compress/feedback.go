package compress

import (
	"slices"

	"peermesh/ops/tensor"
	"peermesh/trainer"
)

// A Feedback is what this rank has not got across, by parameter: it is added to the next
// step's gradients, so that nothing is lost, only late. The zero value has nothing. It is
// this rank's own, and no part of what ranks have in common; see the package's guide.
//
// A hook that has one has its methods, for between two steps.
type Feedback struct {
	at    map[string]tensor.Tensor // by parameter's name: a part of a bucket, or what was loaded
	flats []flat                   // by bucket
}

// A flat is the feedback of a bucket.
type flat struct {
	params []*trainer.Param
	x      tensor.Tensor
}

// Reset forgets everything: for a new world, since what was under way when the last one
// ended is of a step that has not been.
func (f *Feedback) Reset() { *f = Feedback{} }

// of is the feedback of a bucket, laid out as the bucket is. Buckets are made anew after
// the first step, and in every world.
func (f *Feedback) of(b trainer.Bucket) tensor.Tensor {
	for len(f.flats) <= b.Index {
		f.flats = append(f.flats, flat{})
	}
	if was := &f.flats[b.Index]; was.x.DType() == b.Data.DType() && slices.Equal(was.params, b.Params) {
		return was.x
	}
	if f.at == nil {
		f.at = make(map[string]tensor.Tensor)
	}
	x, at := tensor.New(b.Data.DType(), b.Data.Len()), 0
	for i, p := range b.Params {
		part := x.Slice(at, at+b.Parts[i].Len())
		at += part.Len()
		if was, ok := f.at[p.Name]; ok && was.DType() == part.DType() && was.Len() == part.Len() {
			copy(bytesOf(part), bytesOf(was))
		}
		f.at[p.Name] = part
	}
	f.flats[b.Index] = flat{slices.Clone(b.Params), x}
	return x
}

// addTo adds the feedback of a bucket to its gradients, and returns it to be written.
func (f *Feedback) addTo(b trainer.Bucket) (tensor.Tensor, error) {
	x := f.of(b)
	return x, b.Data.ReduceAt(bytesOf(x), 0, tensor.Sum)
}

// bytesOf is the bytes of a tensor in host memory.
func bytesOf(x tensor.Tensor) []byte {
	p, _ := x.View(0, x.Bytes())
	return p
}

// host is the elements of a tensor of type T in host memory; of another, nil.
func host[T real](x tensor.Tensor) []T {
	e, _ := tensor.Data[T](x)
	return e
}
