package trainer

import (
	"cmp"
	"fmt"
	"slices"

	"peermesh/ops/tensor"
)

// A flight is a bucket on its way.
type flight struct {
	bucket
	index   int
	flat    tensor.Tensor
	staged  tensor.Tensor // a copy in host memory, for a hook; none until there is one
	missing int
	work    Pending
	landed  bool // its parameters have been updated; see DDPConfig.Update
}

// averaged waits for what a bucket has on its way.
func averaged(work Pending) error {
	if err := work.Wait(); err != nil {
		return fmt.Errorf("trainer: averaging gradients: %w", err)
	}
	return nil
}

// arrivals waits for all that is under way, so that nothing is when it returns, whatever went
// wrong. Of errors it keeps the first, err if there is one: that says why, and what goes wrong
// with later buckets goes wrong by it.
func (d *DDP) arrivals(err error) error {
	for _, b := range d.buckets[:d.launched] {
		err = cmp.Or(err, averaged(b.work))
	}
	return err
}

// A place is where a parameter's gradient lies: its bucket, −1 for none, and the
// elements of it.
type place struct{ bucket, lo, hi int }

// lastToFirst is the order in which backward finishes gradients, as a guess.
func lastToFirst(params []*Param) []int {
	order := inOrder(len(params))
	slices.Reverse(order)
	return order
}

// build makes the buckets, of parameters in some order. Gradients keep their
// values.
func (d *DDP) build(order []int) {
	d.buckets = nil
	d.at = make([]place, len(d.params))
	for i := range d.at {
		d.at[i].bucket = -1
	}
	if d.inPlace {
		d.buildInPlace(order)
		return
	}
	for k, b := range cutLast(assign(d.params, order, d.c.FirstBucket, d.c.Bucket), d.params, d.c.LastBucket) {
		d.buckets = append(d.buckets, &flight{bucket: b, index: k, flat: tensor.New(b.dtype, b.len)})
		at := 0
		for _, i := range b.params {
			n := d.params[i].Grad.Len()
			d.at[i] = place{k, at, at + n}
			at += n
		}
	}
	if d.c.Views {
		for i := range d.params {
			d.view(i)
		}
	}
}

// view moves a gradient into its bucket.
func (d *DDP) view(i int) {
	if d.at[i].bucket < 0 {
		return
	}
	p := d.params[i]
	v, err := d.slot(i).Reshape(p.Grad.Shape()...)
	if err != nil {
		panic(fmt.Sprintf("trainer: gradient of %q: %v", p.Name, err)) // the slot was made for it
	}
	copyElements(v, p.Grad)
	p.Grad = v
}

// slot is where the gradient of parameter i lies in its bucket.
func (d *DDP) slot(i int) tensor.Tensor {
	at := d.at[i]
	return d.buckets[at.bucket].flat.Slice(at.lo, at.hi)
}

// rebuild makes the buckets anew, in the order in which gradients were ready on
// rank 0: then a bucket is full as early as can be. Ranks with no samples have no
// say; those of rank 0, if it is one, keep the guess.
func (d *DDP) rebuild() error {
	order := make([]int32, len(d.params))
	if d.g.Rank() == 0 {
		own := d.order
		if d.idle {
			own = nil
		}
		for k, i := range complete(own, len(d.params)) {
			order[k] = int32(i)
		}
	}
	if err := d.g.Broadcast(d.ctx, tensor.Of(order), d.g.Global(0)).Wait(); err != nil {
		return fmt.Errorf("trainer: agreeing on buckets: %w", err)
	}
	seen := make([]bool, len(d.params))
	final := make([]int, len(order))
	for k, i := range order {
		if i < 0 || int(i) >= len(seen) || seen[i] {
			return fmt.Errorf("trainer: agreeing on buckets: rank 0 names parameter %d of %d, or twice", i, len(seen))
		}
		seen[i], final[k] = true, int(i)
	}
	d.rebuilt = true
	if !slices.Equal(final, lastToFirst(d.params)) {
		d.build(final)
	}
	return nil
}

// complete appends the parameters that an order lacks, the last first.
func complete(order []int, n int) []int {
	order = slices.Clone(order)
	has := make([]bool, n)
	for _, i := range order {
		has[i] = true
	}
	for i := n - 1; i >= 0; i-- {
		if !has[i] {
			order = append(order, i)
		}
	}
	return order
}

// The following are of tensors that have passed averageable: one of the two
// slices is nil.

func copyElements(dst, src tensor.Tensor) {
	copy(data[float32](dst), data[float32](src))
	copy(data[float64](dst), data[float64](src))
}

func clone(x tensor.Tensor) tensor.Tensor {
	y := tensor.New(x.DType(), x.Shape()...)
	copyElements(y, x)
	return y
}

func zero(x tensor.Tensor) {
	clear(data[float32](x))
	clear(data[float64](x))
}

func add(dst, src tensor.Tensor) {
	addTo(data[float32](dst), data[float32](src))
	addTo(data[float64](dst), data[float64](src))
}

func addTo[T real](dst, src []T) {
	for i, v := range src {
		dst[i] += v
	}
}
