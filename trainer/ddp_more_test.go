package trainer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// set makes every element of a gradient v.
func set(p *Param, v float64) {
	zero(p.Grad)
	for i := range data[float32](p.Grad) {
		data[float32](p.Grad)[i] = float32(v)
	}
	for i := range data[float64](p.Grad) {
		data[float64](p.Grad)[i] = v
	}
}

// first is a gradient's first element.
func first(p *Param) float64 {
	if x := data[float32](p.Grad); x != nil {
		return float64(x[0])
	}
	return data[float64](p.Grad)[0]
}

func ddp(g *ops.Group, params []*Param, c DDPConfig) (*DDP, error) {
	return NewDDP(context.Background(), g, params, c)
}

// After the first step the buckets are in the order in which rank 0's gradients
// were ready, on all ranks.
func TestDDPRebuilds(t *testing.T) {
	for _, views := range []bool{false, true} {
		noErrors(t, ranks(3, func(g *ops.Group) error {
			var params []*Param
			for i := range 5 {
				params = append(params, floats[float32](fmt.Sprint(i), 4, 0))
			}
			d, err := ddp(g, params, DDPConfig{FirstBucket: 32, Bucket: 16, Views: views})
			if err != nil {
				return err
			}
			for step := range 3 {
				order := [][]int{{2, 0, 4, 1, 3}, {4, 3, 2, 1, 0}, {0, 1, 2, 3, 4}}[g.Rank()]
				for _, i := range order {
					set(params[i], float64(i+step))
					d.Ready(i)
				}
				if err := d.Wait(); err != nil {
					return err
				}
				var got [][]int
				for _, b := range d.buckets {
					got = append(got, b.params)
				}
				if want := [][]int{{2, 0}, {4}, {1}, {3}}; !reflect.DeepEqual(got, want) {
					return fmt.Errorf("step %d: %v, want %v", step, got, want)
				}
				for i, p := range params {
					if v := first(p); math.Abs(v-float64(i+step)) > 1e-5 {
						return fmt.Errorf("step %d: gradient %d is %v", step, i, v)
					}
				}
			}
			return nil
		}))
	}
}

// With views a gradient is its bucket's memory, in its own shape.
func TestDDPViews(t *testing.T) {
	noErrors(t, ranks(2, func(g *ops.Group) error {
		v := tensor.New(tensor.Float32, 2, 3)
		p := &Param{Name: "w", Value: v, Grad: tensor.New(tensor.Float32, 2, 3)}
		d, err := ddp(g, []*Param{p, floats[float64]("x", 2, 1)}, DDPConfig{Views: true})
		if err != nil {
			return err
		}
		if got := p.Grad.Shape(); !slices.Equal(got, []int{2, 3}) {
			return fmt.Errorf("shape %v", got)
		}
		set(p, 7)
		if got := data[float32](d.slot(0)); got[5] != 7 {
			return fmt.Errorf("the bucket has %v", got)
		}
		return nil
	}))
}

// Where a parameter is used by some ranks the others count as zero; where by none,
// its gradient stays.
func TestDDPFindsUnused(t *testing.T) {
	for _, c := range []DDPConfig{{FindUnused: true}, {FindUnused: true, Views: true}, {Static: true}, {FindUnused: true, FirstBucket: 1, Bucket: 1}} {
		noErrors(t, ranks(3, func(g *ops.Group) error {
			params := []*Param{floats[float32]("a", 4, 0), floats[float64]("b", 4, 0), floats[float32]("c", 4, 0)}
			d, err := ddp(g, params, c)
			if err != nil {
				return err
			}
			for step := range 4 {
				set(params[1], 55) // used by nobody
				set(params[0], 6)
				d.Ready(0)
				if g.Rank() == 1 {
					set(params[2], 9)
					d.Ready(2)
				}
				if err := d.Wait(); err != nil {
					return err
				}
				a, b, c := first(params[0]), first(params[1]), first(params[2])
				if math.Abs(a-6) > 1e-5 || b != 55 || math.Abs(c-3) > 1e-5 || !slices.Equal(d.Unused(), []int{1}) {
					return fmt.Errorf("step %d: %v %v %v, unused %v", step, a, b, c, d.Unused())
				}
			}
			return nil
		}))
	}
}

// A graph that was to be static and is not is named.
func TestDDPStaticGraphChanges(t *testing.T) {
	for says, second := range map[string][]int{"gradient of \"a\" is ready, which": {1, 0}, "in this step for b": {}} {
		errs := ranks(2, func(g *ops.Group) error {
			d, err := ddp(g, []*Param{floats[float32]("a", 4, 0), floats[float32]("b", 4, 0)}, DDPConfig{Static: true, FirstBucket: 1, Bucket: 1})
			if err != nil {
				return err
			}
			d.Ready(1)
			if err := d.Wait(); err != nil {
				return err
			}
			for _, i := range second {
				d.Ready(i)
			}
			return d.Wait()
		})
		for r, err := range errs {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: rank %d: %v", says, r, err)
			}
		}
	}
}

// Gradients accumulate, 1 and then 2 as torch has it, and the next step that sends
// averages the total.
func TestDDPNoSync(t *testing.T) {
	worlds := memnet.New(2)
	noErrors(t, each(worlds, func(rank int, w *memnet.World) error {
		p := floats[float32]("a", 4, 0)
		d, err := ddp(ops.NewGroup(w, ops.Config{}), []*Param{p}, DDPConfig{})
		if err != nil {
			return err
		}
		sent := w.Sent()
		for k := 1; k <= 2; k++ {
			d.NoSync()
			set(p, float64(1+rank))
			d.Ready(0)
			if err := d.Wait(); err != nil {
				return err
			}
			if first(p) != float64(k*(1+rank)) {
				return fmt.Errorf("after %d: %v", k, first(p))
			}
		}
		if w.Sent() != sent {
			return errors.New("something was sent")
		}
		for _, want := range []float64{4.5, 1.5} { // then nothing is left over
			set(p, float64(1+rank))
			d.Ready(0)
			if err := d.Wait(); err != nil {
				return err
			}
			if first(p) != want {
				return fmt.Errorf("got %v, want %v", first(p), want)
			}
		}
		return nil
	}))
}

func TestDDPBuffers(t *testing.T) {
	noErrors(t, ranks(3, func(g *ops.Group) error {
		mean := []float32{float32(g.Rank() + 5)}
		p := floats[float32]("a", 2, 0)
		d, err := ddp(g, []*Param{p}, DDPConfig{Buffers: []*Param{{Name: "mean", Value: tensor.Of(mean)}}})
		if err != nil {
			return err
		}
		if mean[0] != 5 {
			return fmt.Errorf("at first %v", mean)
		}
		mean[0] = float32(g.Rank() + 8)
		d.Ready(0)
		if err := d.Wait(); err != nil || mean[0] != 8 {
			return fmt.Errorf("after a step %v, %v", mean, err)
		}
		return nil
	}))
}

// What is synced is not sent again, but compared all the same.
func TestDDPSynced(t *testing.T) {
	noErrors(t, ranks(2, func(g *ops.Group) error {
		p := floats[float32]("a", 2, uint64(g.Rank()))
		before := data[float32](p.Value)[0]
		if _, err := ddp(g, []*Param{p}, DDPConfig{Synced: true}); err != nil || data[float32](p.Value)[0] != before {
			return fmt.Errorf("%v: %v became %v", err, before, p.Value)
		}
		return nil
	}))
}

// Buckets of any size, the first of another than the others, from one that no gradient fills to
// one that holds all, give what one process gives.
func TestBucketsOfAnySize(t *testing.T) {
	sizes := []int{1, 9, 57, 230, 1000} // bytes; the gradients are 8 to 280, 424 in all
	for _, first := range sizes {
		for _, rest := range sizes {
			m := mode{name: fmt.Sprintf("buckets of %d and %d bytes", first, rest), batch: 5, micro: 1, used: true,
				ddp: DDPConfig{FirstBucket: first, Bucket: rest, Views: first > rest, Abreast: first < rest}}
			equivalent[float64](t, m, 1e-12)
		}
	}
}
