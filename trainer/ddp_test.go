package trainer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

// ranks runs f on every rank of a world of n and returns the errors.
func ranks(n int, f func(g *ops.Group) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r, w := range memnet.New(n) {
		g := ops.NewGroup(w, ops.Config{})
		wg.Go(func() { errs[r] = f(g) })
	}
	wg.Wait()
	return errs
}

func noErrors(t *testing.T, errs []error) {
	t.Helper()
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// floats is a parameter of n random values and gradients.
func floats[T float32 | float64](name string, n int, seed uint64) *Param {
	rng := rand.New(rand.NewPCG(seed, 1))
	v, g := make([]T, n), make([]T, n)
	for i := range v {
		v[i], g[i] = T(rng.NormFloat64()), T(rng.NormFloat64())
	}
	return &Param{Name: name, Value: tensor.Of(v), Grad: tensor.Of(g)}
}

// An averager is a DDP, or a ZeRO at stage 2 in its place.
type averager interface {
	Weigh(weight float64)
	Ready(i int)
	Idle()
	Err() error
	Wait() error
}

func grads[T tensor.Element](p *Param) []T {
	g, _ := tensor.Data[T](p.Grad)
	return g
}

func TestAssign(t *testing.T) {
	f32 := func(n int) *Param { return floats[float32]("f", n, 0) }
	f64 := func(n int) *Param { return floats[float64]("d", n, 0) }
	none := &Param{Name: "n", Value: tensor.New(tensor.Float32, 5)}
	convnet := []*Param{f32(144), f32(16), f32(4608), f32(32), f32(294912), f32(64), f32(640), f32(10)}
	for _, c := range []struct {
		name        string
		params      []*Param
		first, rest int
		want        [][]int
	}{
		{"nothing", nil, 100, 100, nil},
		{"convnet", convnet, DefaultFirstBucket, DefaultBucket, [][]int{{7, 6, 5, 4}, {3, 2, 1, 0}}},
		{"one each", []*Param{f32(1), f32(1), f32(1)}, 1, 1, [][]int{{2}, {1}, {0}}},
		{"all in one", []*Param{f32(1), f32(1), f32(1)}, 1000, 1, [][]int{{2, 1, 0}}},
		{"exactly full", []*Param{f32(3), f32(2), f32(2)}, 8, 20, [][]int{{2}, {1, 0}}},
		{"types apart", []*Param{f32(1), f64(1), f32(1), f64(1)}, 1000, 1000, [][]int{{3, 1}, {2, 0}}},
		{"no gradient", []*Param{f32(1), none, f32(1)}, 1000, 1000, [][]int{{2, 0}}},
	} {
		checkBuckets(t, c.name, assign(c.params, lastToFirst(c.params), c.first, c.rest), c.params, c.want)
	}
}

// checkBuckets wants buckets to have these parameters, by index, and to be as long.
func checkBuckets(t *testing.T, name string, all []bucket, params []*Param, want [][]int) {
	t.Helper()
	var got [][]int
	for _, b := range all {
		got = append(got, b.params)
		n := 0
		for _, i := range b.params {
			n += params[i].Grad.Len()
		}
		if n != b.len {
			t.Errorf("%s: bucket %v has %d elements, says %d", name, b.params, n, b.len)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", name, got, want)
	}
}

// The average is that of PyTorch, to the last bit: scaled by 1/n, then summed.
// Two ranks have only one order to sum in.
func TestDDPAverages(t *testing.T) {
	const steps = 3
	noErrors(t, ranks(2, func(g *ops.Group) error {
		params := []*Param{floats[float32]("a", 1000, 0), floats[float64]("b", 77, 1), floats[float32]("c", 3, 2)}
		d, err := NewDDP(context.Background(), g, params, DDPConfig{FirstBucket: 16, Bucket: 100})
		if err != nil {
			return err
		}
		for step := range steps {
			want := make([]float32, 1000)
			for r := range 2 {
				for i, v := range grads[float32](floats[float32]("", 1000, uint64(100*step+r))) {
					want[i] += v * 0.5
				}
			}
			copy(grads[float32](params[0]), grads[float32](floats[float32]("", 1000, uint64(100*step+g.Rank()))))
			for _, i := range [][]int{{2, 1, 0}, {0, 2, 1}}[g.Rank()] { // any order
				d.Ready(i)
			}
			if err := d.Wait(); err != nil {
				return err
			}
			if !reflect.DeepEqual(grads[float32](params[0]), want) {
				return fmt.Errorf("step %d: not the average", step)
			}
		}
		return nil
	}))
}

func TestDDPStartsFromRank0(t *testing.T) {
	noErrors(t, ranks(3, func(g *ops.Group) error {
		p := floats[float32]("a", 50, uint64(g.Rank()))
		if _, err := NewDDP(context.Background(), g, []*Param{p}, DDPConfig{}); err != nil {
			return err
		}
		got, _ := tensor.Data[float32](p.Value)
		want, _ := tensor.Data[float32](floats[float32]("a", 50, 0).Value)
		if !reflect.DeepEqual(got, want) {
			return errors.New("not rank 0's values")
		}
		return nil
	}))
}

func TestDDPRefusesOtherModels(t *testing.T) {
	base := func() []*Param {
		return []*Param{floats[float32]("conv1.weight", 6, 0), floats[float32]("fc1.bias", 2, 0)}
	}
	for name, c := range map[string]struct {
		odd  func() []*Param
		says string
	}{
		"shape": {func() []*Param { return []*Param{base()[0], floats[float32]("fc1.bias", 3, 0)} }, "fc1.bias"},
		"dtype": {func() []*Param { return []*Param{floats[float64]("conv1.weight", 6, 0), base()[1]} }, "conv1.weight"},
		"name":  {func() []*Param { return []*Param{base()[0], floats[float32]("fc2.bias", 2, 0)} }, "fc2.bias"},
		"count": {func() []*Param { return base()[:1] }, "missing"},
		"more":  {func() []*Param { return append(base(), floats[float32]("extra", 1, 0)) }, "extra"},
		"none":  {func() []*Param { return nil }, "missing"},
		"grad":  {func() []*Param { return []*Param{base()[0], {Name: "fc1.bias", Value: tensor.New(tensor.Float32, 2)}} }, "without gradient"},
	} {
		errs := ranks(3, func(g *ops.Group) error {
			params := base()
			if g.Rank() == 1 {
				params = c.odd()
			}
			_, err := NewDDP(context.Background(), g, params, DDPConfig{})
			return err
		})
		for r, err := range errs {
			var p *ParamsError
			if !errors.As(err, &p) || p.Rank != 1 || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: rank %d: %v", name, r, err)
			}
		}
	}
}

// What only one rank has against its parameters, all learn.
func TestDDPRefusesGradients(t *testing.T) {
	ints := &Param{Name: "steps", Value: tensor.New(tensor.Int32, 2), Grad: tensor.New(tensor.Int32, 2)}
	long := &Param{Name: "steps", Value: tensor.New(tensor.Float32, 2), Grad: tensor.New(tensor.Float32, 3)}
	for _, bad := range []*Param{ints, long} {
		for r, err := range ranks(2, func(g *ops.Group) error {
			p := floats[float32]("steps", 2, 0)
			if g.Rank() == 1 {
				p = bad
			}
			_, err := NewDDP(context.Background(), g, []*Param{p}, DDPConfig{})
			return err
		}) {
			if err == nil || !strings.Contains(err.Error(), `"steps"`) {
				t.Errorf("rank %d: %v", r, err)
			}
		}
	}
	for _, c := range []DDPConfig{{FirstBucket: -1}, {Bucket: -1}, {LastBucket: -1}} {
		if _, err := NewDDP(context.Background(), nil, nil, c); err == nil {
			t.Errorf("%+v: a bucket of -1 bytes passed", c)
		}
	}
}

func TestDDPNamesWhatIsWrong(t *testing.T) {
	for says, ready := range map[string][]int{
		`"b" is ready twice`: {1, 1, 0},
		"gradient 2":         {0, 1, 2},
		"for b":              {0},
		"for a, b":           {},
	} {
		noErrors(t, ranks(2, func(g *ops.Group) error {
			params := []*Param{floats[float32]("a", 4, 0), floats[float32]("b", 4, 0)}
			d, err := NewDDP(context.Background(), g, params, DDPConfig{})
			if err != nil {
				return err
			}
			for _, i := range ready {
				d.Ready(i)
			}
			if err := d.Wait(); err == nil || !strings.Contains(err.Error(), says) {
				return fmt.Errorf("%q: got %v", says, err)
			}
			d.Ready(0) // the next step is a new one
			d.Ready(1)
			return d.Wait()
		}))
	}
}

func TestAverageGradients(t *testing.T) {
	const n = 4
	noErrors(t, ranks(n, func(g *ops.Group) error {
		p := &Param{Name: "a", Value: tensor.New(tensor.Float64, 3), Grad: tensor.Of([]float64{1, float64(g.Rank()), -8})}
		none := &Param{Name: "b", Value: tensor.New(tensor.Float64, 3)}
		if err := AverageGradients(context.Background(), g, []*Param{p, none}); err != nil {
			return err
		}
		if got := grads[float64](p); !reflect.DeepEqual(got, []float64{1, 1.5, -8}) {
			return fmt.Errorf("got %v", got)
		}
		return nil
	}))
	g := ops.NewGroup(memnet.New(1)[0], ops.Config{})
	if err := AverageGradients(context.Background(), g, []*Param{{Name: "i", Value: tensor.New(tensor.Int32, 1), Grad: tensor.New(tensor.Int32, 1)}}); err == nil {
		t.Error("averaged integers")
	}
}
