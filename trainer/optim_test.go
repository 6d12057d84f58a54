package trainer

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"peermesh/ops/tensor"
)

// An optimiser is made once, of parameters whose gradients come later.
func ExampleOptimizer() {
	x := []float64{5, -5}
	w := &Param{Name: "w", Value: tensor.Of(x)}
	var o Optimizer
	o, err := NewSGD([]*Param{w}, SGDConfig{LR: .1, Momentum: .5})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 100 { // descend to the minimum of (x-3)²
		w.Grad = tensor.Of([]float64{2 * (x[0] - 3), 2 * (x[1] - 3)})
		if err := o.Step(); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Printf("%.6f\n", x)
	// Output: [3.000000 3.000000]
}

// A trajectory is what an optimiser makes of the parameter [1 -2 .5] when the
// gradient of step k, counted from 1, is k times [.1 -.2 .3].
type trajectory [3][3]float64

// follow checks a trajectory in float64 to 1e-9 and in float32 to 1e-6, as far
// as float32 goes.
func follow(t *testing.T, want trajectory, build func(params []*Param) (Optimizer, error)) {
	t.Helper()
	followIn(t, 1e-9, want, build, []float64{1, -2, .5}, []float64{.1, -.2, .3})
	followIn(t, 1e-6, want, build, []float32{1, -2, .5}, []float32{.1, -.2, .3})
}

func followIn[T real](t *testing.T, tolerance float64, want trajectory,
	build func(params []*Param) (Optimizer, error), x, gradient []T) {
	t.Helper()
	grad := make([]T, len(x))
	o, err := build([]*Param{{Name: "w", Value: tensor.Of(x), Grad: tensor.Of(grad)}})
	if err != nil {
		t.Fatal(err)
	}
	for k := range want {
		for i := range grad {
			grad[i] = T(k+1) * gradient[i]
		}
		if err := o.Step(); err != nil {
			t.Fatal(err)
		}
		for i := range x {
			if off := math.Abs(float64(x[i]) - want[k][i]); !(off <= tolerance) {
				t.Errorf("%T: element %d after step %d is %.12g, want %.12g, %.2g off", x[i], i, k+1, x[i], want[k][i], off)
			}
		}
	}
}

// optimizers builds one of each kind, with all the state it can have.
var optimizers = map[string]func(params []*Param) (Optimizer, error){
	"SGD": func(params []*Param) (Optimizer, error) {
		return NewSGD(params, SGDConfig{LR: .1, Momentum: .9, WeightDecay: .01})
	},
	"SGD without momentum": func(params []*Param) (Optimizer, error) {
		return NewSGD(params, SGDConfig{LR: .1, WeightDecay: .01})
	},
	"Adadelta": func(params []*Param) (Optimizer, error) {
		return NewAdadelta(params, AdadeltaConfig{WeightDecay: .01})
	},
	"Adagrad": func(params []*Param) (Optimizer, error) {
		return NewAdagrad(params, AdagradConfig{LR: .1, LRDecay: .1, WeightDecay: .01})
	},
	"Adam": func(params []*Param) (Optimizer, error) {
		return NewAdam(params, AdamConfig{LR: .1, WeightDecay: .01, AMSGrad: true})
	},
	"AdamW": func(params []*Param) (Optimizer, error) {
		return NewAdamW(params, AdamWConfig{LR: .1})
	},
	"RMSprop": func(params []*Param) (Optimizer, error) {
		return NewRMSprop(params, RMSpropConfig{Momentum: .9, Centered: true, WeightDecay: .01})
	},
	"LAMB": func(params []*Param) (Optimizer, error) {
		return NewLAMB(params, LAMBConfig{LR: .1})
	},
	"Lion": func(params []*Param) (Optimizer, error) {
		return NewLion(params, LionConfig{LR: .01, WeightDecay: .1})
	},
}

// learners are settings with which each optimiser comes near the minimum below.
var learners = map[string]func(params []*Param) (Optimizer, error){
	"SGD":      func(ps []*Param) (Optimizer, error) { return NewSGD(ps, SGDConfig{LR: .05, Momentum: .5}) },
	"Adadelta": func(ps []*Param) (Optimizer, error) { return NewAdadelta(ps, AdadeltaConfig{LR: 10}) },
	"Adagrad":  func(ps []*Param) (Optimizer, error) { return NewAdagrad(ps, AdagradConfig{LR: 1}) },
	"Adam":     func(ps []*Param) (Optimizer, error) { return NewAdam(ps, AdamConfig{LR: .1}) },
	"AdamW":    func(ps []*Param) (Optimizer, error) { return NewAdamW(ps, AdamWConfig{LR: .1, WeightDecay: Zero}) },
	"RMSprop":  func(ps []*Param) (Optimizer, error) { return NewRMSprop(ps, RMSpropConfig{LR: .05}) },
	"LAMB":     func(ps []*Param) (Optimizer, error) { return NewLAMB(ps, LAMBConfig{LR: .1, WeightDecay: Zero}) },
	"Lion":     func(ps []*Param) (Optimizer, error) { return NewLion(ps, LionConfig{LR: .1}) },
}

// TestConvergence minimises (a-3)² + 10(b+1)², while a cosine lowers the rate.
func TestConvergence(t *testing.T) {
	for name, build := range learners {
		t.Run(name, func(t *testing.T) {
			x, grad := []float64{.5, .5}, make([]float64, 2)
			o, err := build([]*Param{{Value: tensor.Of(x), Grad: tensor.Of(grad)}})
			if err != nil {
				t.Fatal(err)
			}
			s, err := NewSchedule(o, CosineAnnealing{Steps: 300})
			if err != nil {
				t.Fatal(err)
			}
			for range 300 {
				grad[0], grad[1] = 2*(x[0]-3), 20*(x[1]+1)
				step(t, o)
				s.Step()
			}
			if !(math.Hypot(x[0]-3, x[1]+1) < .01) {
				t.Errorf("at %.4f, want [3 -1]", x)
			}
		})
	}
}

// TestAbsentGradient leaves one of two parameters without a gradient for a step
// and gives it one afterwards: it must go on as if that step had not been.
func TestAbsentGradient(t *testing.T) {
	for name, build := range optimizers {
		t.Run(name, func(t *testing.T) {
			a, b := []float64{1, 2}, []float64{1, 2}
			grad := tensor.Of([]float64{.5, -.5})
			params := []*Param{{Name: "a", Value: tensor.Of(a), Grad: grad}, {Name: "b", Value: tensor.Of(b)}}
			o, err := build(params)
			if err != nil {
				t.Fatal(err)
			}
			step(t, o)
			first := slices.Clone(a)
			if a[0] == 1 || !slices.Equal(b, []float64{1, 2}) {
				t.Fatalf("with a gradient %v, without %v", a, b)
			}
			params[0].Grad, params[1].Grad = tensor.Tensor{}, grad
			step(t, o)
			if !slices.Equal(a, first) || !slices.Equal(b, first) {
				t.Errorf("%v and %v after a step each, want %v", a, b, first)
			}
		})
	}
}

func step(t *testing.T, o Optimizer) {
	t.Helper()
	if err := o.Step(); err != nil {
		t.Fatal(err)
	}
}

func TestStepDoesNotAllocate(t *testing.T) {
	for name, build := range optimizers {
		t.Run(name, func(t *testing.T) {
			o, err := build([]*Param{
				{Value: tensor.New(tensor.Float32, 10, 10), Grad: tensor.New(tensor.Float32, 10, 10)},
				{Value: tensor.New(tensor.Float64, 10), Grad: tensor.New(tensor.Float64, 10)},
				{Value: tensor.New(tensor.Float64, 10)},
			})
			if err != nil {
				t.Fatal(err)
			}
			if n := testing.AllocsPerRun(10, func() { step(t, o) }); n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

// device is memory that lends no bytes.
type device struct{ tensor.Memory }

func onDevice(x tensor.Tensor) tensor.Tensor {
	return tensor.In(device{x.Memory()}, x.DType(), x.Shape()...)
}

// TestParams gives optimisers parameters that they cannot train, at first or
// later.
func TestParams(t *testing.T) {
	v := func() tensor.Tensor { return tensor.New(tensor.Float32, 2, 3) }
	for name, c := range map[string]struct {
		params []*Param
		want   string
	}{
		"none":                {nil, "no parameters"},
		"nil":                 {[]*Param{nil}, "a parameter is nil"},
		"without a value":     {[]*Param{{Name: "w"}}, `parameter "w" is dtype(0)[0]`},
		"integers":            {[]*Param{{Name: "w", Value: tensor.Of([]int32{1})}}, `parameter "w" is int32[1], want float32 or float64`},
		"on a device":         {[]*Param{{Name: "w", Value: onDevice(v())}}, "in host memory"},
		"gradient on one":     {[]*Param{{Name: "w", Value: v(), Grad: onDevice(v())}}, "outside host memory"},
		"gradient of a type":  {[]*Param{{Name: "w", Value: v(), Grad: tensor.New(tensor.Float64, 2, 3)}}, `"w" is float32[2 3], its gradient float64[2 3]`},
		"gradient of a shape": {[]*Param{{Name: "w", Value: v(), Grad: v().Slice(0, 5)}}, `"w" is float32[2 3], its gradient float32[5]`},
	} {
		for kind, build := range optimizers {
			if _, err := build(c.params); err == nil || !strings.HasPrefix(err.Error(), "trainer: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %s: %v, want %q", kind, name, err, c.want)
			}
			if len(c.params) == 0 {
				continue
			}
			x := []float32{1, 1}
			params := []*Param{{Value: tensor.Of(x), Grad: tensor.Of([]float32{1, 1})}, {Value: v(), Grad: v()}}
			o, err := build(params)
			if err != nil {
				t.Fatal(err)
			}
			params[1] = c.params[0]
			if err := o.Step(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, later %s: %v, want %q", kind, name, err, c.want)
			}
			if x[0] != 1 {
				t.Errorf("%s, later %s: another parameter has moved", kind, name)
			}
		}
	}
}

// TestResizedParam replaces a value behind the back of an optimiser whose state
// has the old size.
func TestResizedParam(t *testing.T) {
	for _, x := range []tensor.Tensor{tensor.New(tensor.Float32, 7), tensor.New(tensor.Float64, 6)} {
		for kind := range optimizers {
			if kind == "SGD without momentum" {
				continue // it remembers nothing
			}
			p := &Param{Name: "w", Value: tensor.New(tensor.Float32, 6)}
			o, err := optimizers[kind]([]*Param{p})
			if err != nil {
				t.Fatal(err)
			}
			p.Value = x
			if err := o.Step(); err == nil || !strings.Contains(err.Error(), `parameter "w" has become `+x.String()) {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

// benchmark steps through as many float32 parameters as the ConvNet has, in its
// eight tensors' proportions: one of them has nearly all.
func benchmark(b *testing.B, build func(params []*Param) (Optimizer, error)) {
	var params []*Param
	for _, n := range []int{144, 16, 4608, 32, 294912, 64, 640, 10} {
		p := &Param{Value: tensor.New(tensor.Float32, n), Grad: tensor.New(tensor.Float32, n)}
		grad, _ := tensor.Data[float32](p.Grad)
		for i := range grad {
			grad[i] = float32(math.Sin(float64(i)))
		}
		params = append(params, p)
	}
	o, err := build(params)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := o.Step(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStep(b *testing.B) {
	for name, build := range optimizers {
		b.Run(name, func(b *testing.B) { benchmark(b, build) })
	}
}
