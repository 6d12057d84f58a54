package trainer

import (
	"fmt"
	"reflect"

	"peermesh/ops/tensor"
)

// Gradients that the host cannot address, such as a GPU's, are averaged where they lie. They
// are not copied into buckets: a bucket is a run of them that lie side by side in one memory,
// in the order of backward, which is for the model to see to. A hook gets them in the host's
// memory, to which they are copied and back. For the rest a DDP of such gradients is as any
// other, but it cannot add to them, so that what would need that is refused.

// elsewhere reports whether the host cannot address a gradient.
func elsewhere(p *Param) bool { return hasGradient(p) && !addressable(p.Grad) }

// placeable is averageable for gradients that stay where they are.
func placeable(params []*Param, c DDPConfig) error {
	if c.FindUnused || c.Static {
		return fmt.Errorf("trainer: gradients outside host memory are averaged without FindUnused and Static")
	}
	for _, p := range params {
		t := p.Grad.DType()
		switch {
		case !hasGradient(p):
		case t != tensor.Float32 && t != tensor.Float64:
			return fmt.Errorf("trainer: gradient of %q is %v: want float32 or float64", p.Name, p.Grad)
		case p.Grad.Len() != p.Value.Len():
			return fmt.Errorf("trainer: gradient of %q is %v, its value %v: want one shape", p.Name, p.Grad, p.Value)
		}
	}
	return nil
}

// buildInPlace makes a bucket of each run of gradients that lie side by side.
func (d *DDP) buildInPlace(order []int) {
	for _, i := range order {
		g := d.params[i].Grad
		if g.Memory() == nil {
			continue
		}
		k := len(d.buckets) - 1
		if k < 0 || !follows(d.buckets[k].flat, g) {
			k++
			d.buckets = append(d.buckets, &flight{bucket: bucket{dtype: g.DType()}, index: k, flat: g.Slice(0, 0)})
		}
		b := d.buckets[k]
		d.at[i] = place{k, b.len, b.len + g.Len()}
		b.params, b.len = append(b.params, i), b.len+g.Len()
		b.flat = longer(b.flat, b.len)
	}
}

// hooked begins a bucket's averaging by the hook. What the host cannot address waits for its
// gradients here, is copied, and comes back in the Pending's Wait.
func (d *DDP) hooked(b *flight, weight float64) Pending {
	data := b.flat
	if d.inPlace {
		if b.staged.Memory() == nil {
			b.staged = tensor.New(b.dtype, b.len)
		}
		data = b.staged
		if err := tensor.Copy(data, b.flat); err != nil {
			return Failed(fmt.Errorf("gradients to the host: %w", err))
		}
	}
	scale(data, weight)
	work := d.c.Hook.Reduce(d.ctx, d.way(b.index), publicBucket(b.index, len(d.buckets), data, b.bucket.params, d.params, d.at))
	if err := stillborn(work); err != nil {
		d.err = fmt.Errorf("trainer: averaging gradients: %w", err)
		return Failed(nil)
	}
	if !d.inPlace {
		return work
	}
	return &Later{First: work, Then: func() error { return tensor.Copy(b.flat, data) }}
}

// follows reports whether y begins where x ends, in the same memory.
func follows(x, y tensor.Tensor) bool {
	a, b := reflect.ValueOf(x.Memory()), reflect.ValueOf(y.Memory())
	return x.DType() == y.DType() && a.Comparable() && b.Comparable() && a.Interface() == b.Interface() &&
		y.Offset() == x.Offset()+x.Bytes()
}

// longer is a tensor of n elements that begins where x does, at a multiple of its elements'
// size.
func longer(x tensor.Tensor, n int) tensor.Tensor {
	from := int(x.Offset()) / x.DType().Size()
	return tensor.In(x.Memory(), x.DType(), from+n).Slice(from, from+n)
}

// clear makes a gradient zeros, wherever it is.
func (d *DDP) clear(i int) {
	g := d.params[i].Grad
	if !d.inPlace {
		zero(g)
		return
	}
	if err := tensor.Copy(g, tensor.New(g.DType(), g.Shape()...)); err != nil && d.err == nil {
		d.err = fmt.Errorf("trainer: gradient of %q: %w", d.params[i].Name, err)
	}
}
