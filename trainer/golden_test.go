package trainer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"testing"

	"peermesh/ops/tensor"
)

// goldenFiles are what torch.optim does, and what published code for PyTorch does of which
// torch.optim has nothing; optim.py and published.py beside them write and explain them.
var goldenFiles = []string{"testdata/torch/optim.jsonl", "testdata/torch/published.jsonl"}

// A goldenCase is a line of goldenFiles. The first of each says whose work it is.
type goldenCase struct {
	Torch     string
	From      []string
	Optimizer string
	Groups    []json.RawMessage
	Schedule  []json.RawMessage // name and settings
	Values    [][]float64
	Rates     [][]float64
	Momenta   [][]float64
	Metrics   []float64
	Max, Norm float64
	Gradients []float64
}

func (c goldenCase) String() string {
	text := c.Optimizer
	for _, raw := range append(c.Groups, c.Schedule...) {
		text += " " + string(raw)
	}
	return text
}

// goldens reads the cases that choose chooses.
func goldens(t *testing.T, choose func(c goldenCase) bool) []goldenCase {
	t.Helper()
	var chosen []goldenCase
	for _, name := range goldenFiles {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var c goldenCase
			strictly(t, line, &c)
			if choose(c) {
				chosen = append(chosen, c)
			}
		}
	}
	if len(chosen) == 0 {
		t.Fatal("no cases")
	}
	return chosen
}

// strictly decodes JSON that has no field the target lacks.
func strictly(t *testing.T, text []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// grouped is an optimiser whose configuration is a C.
type grouped[C any] interface {
	Optimizer
	AddParams(params []*Param, c C) error
}

type builder func(t *testing.T, params []*Param, groups []json.RawMessage) Optimizer

// built builds an optimiser from settings in JSON. One group has all parameters,
// several have one each.
func built[C any, O grouped[C]](make func(params []*Param, c C) (O, error)) builder {
	return func(t *testing.T, params []*Param, groups []json.RawMessage) Optimizer {
		t.Helper()
		configs := decodedAll[C](t, groups)
		first := params
		if len(groups) > 1 {
			first = params[:1]
		}
		o, err := make(first, configs[0])
		for i := 1; i < len(groups) && err == nil; i++ {
			err = o.AddParams(params[i:i+1], configs[i])
		}
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
}

func decodedAll[C any](t *testing.T, groups []json.RawMessage) []C {
	t.Helper()
	configs := make([]C, len(groups))
	for i, raw := range groups {
		strictly(t, raw, &configs[i])
	}
	return configs
}

var builders = map[string]builder{
	"SGD":      built(NewSGD),
	"Adadelta": built(NewAdadelta),
	"Adagrad":  built(NewAdagrad),
	"Adam":     built(NewAdam),
	"AdamW":    built(NewAdamW),
	"RMSprop":  built(NewRMSprop),
	"LAMB":     built(NewLAMB),
	"Lion":     built(NewLion),
}

// goldenCurve is the curve of a case's schedule.
func goldenCurve(t *testing.T, schedule []json.RawMessage) Curve {
	t.Helper()
	var name string
	strictly(t, schedule[0], &name)
	switch name {
	case "StepLR":
		return decoded[StepLR](t, schedule[1])
	case "CosineAnnealing":
		return decoded[CosineAnnealing](t, schedule[1])
	case "OneCycle":
		return decoded[OneCycle](t, schedule[1])
	case "Warmup":
		raw := decoded[struct {
			Steps int
			Start float64
			Then  []json.RawMessage
		}](t, schedule[1])
		w := Warmup{Steps: raw.Steps, Start: raw.Start}
		if raw.Then != nil {
			w.Then = goldenCurve(t, raw.Then)
		}
		return w
	}
	t.Fatalf("curve %s", name)
	return nil
}

func decoded[T any](t *testing.T, text []byte) (v T) {
	t.Helper()
	strictly(t, text, &v)
	return v
}

// goldenParams are the parameters of optim.py, in either type.
func goldenParams[T real]() []*Param {
	a, b := []T{1, -2, .5}, []T{.25, -.75, 3, -.125}
	square, _ := tensor.Of(b).Reshape(2, 2)
	return []*Param{{Name: "a", Value: tensor.Of(a)}, {Name: "b", Value: square}}
}

// giveGradients gives them the gradients of a step.
func giveGradients[T real](params []*Param, step int) {
	element := 0
	for which, p := range params {
		grad := make([]T, p.Value.Len())
		for i := range grad {
			grad[i] = T((5*step+3*element+step*element)%13-5) / 8
			element++
		}
		p.Grad, _ = tensor.Of(grad).Reshape(p.Value.Shape()...)
		if which == 1 && step == 3 {
			p.Grad = tensor.Tensor{}
		}
	}
}

func values[T real](params []*Param) (all []float64) {
	for _, p := range params {
		for _, v := range data[T](p.Value) {
			all = append(all, float64(v))
		}
	}
	return all
}

// near checks numbers one by one to a tolerance, that of numbers above 1 by part.
func near(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
		return
	}
	for i := range got {
		if off := math.Abs(got[i] - want[i]); !(off <= tolerance*max(1, math.Abs(want[i]))) {
			t.Errorf("%s: number %d is %.12g, want %.12g, %.2g off", what, i, got[i], want[i], off)
		}
	}
}

// TestGoldenOptimizers follows PyTorch, or what is published for it, in float64 to
// 1e-9, and in float32 as far as that goes.
func TestGoldenOptimizers(t *testing.T) {
	left := maps.Clone(builders)
	for _, c := range goldens(t, func(c goldenCase) bool { return c.Values != nil }) {
		delete(left, c.Optimizer)
		t.Run(c.String(), func(t *testing.T) {
			goldenRun[float64](t, c, 1e-9)
			goldenRun[float32](t, c, 2e-5)
		})
	}
	for name := range left {
		t.Errorf("there are no cases of %s", name)
	}
}

func goldenRun[T real](t *testing.T, c goldenCase, tolerance float64) {
	t.Helper()
	params := goldenParams[T]()
	o := builders[c.Optimizer](t, params, c.Groups)
	var s *Schedule
	if c.Schedule != nil {
		var err error
		if s, err = NewSchedule(o, goldenCurve(t, c.Schedule)); err != nil {
			t.Fatal(err)
		}
	}
	for k, want := range c.Values {
		giveGradients[T](params, k)
		step(t, o)
		if s != nil {
			s.Step()
		}
		near(t, fmt.Sprintf("%T, step %d", *new(T), k), values[T](params), want, tolerance)
	}
}

// TestGoldenSchedules follows PyTorch's rates and momenta.
func TestGoldenSchedules(t *testing.T) {
	for _, c := range goldens(t, func(c goldenCase) bool { return c.Rates != nil && c.Metrics == nil }) {
		t.Run(c.String(), func(t *testing.T) {
			o := builders[c.Optimizer](t, goldenParams[float64](), c.Groups)
			s, err := NewSchedule(o, goldenCurve(t, c.Schedule))
			if err != nil {
				t.Fatal(err)
			}
			for k := range c.Rates {
				near(t, fmt.Sprintf("rates of step %d", k), o.Rates(), c.Rates[k], 1e-12)
				if len(o.Momenta()) != 0 {
					near(t, fmt.Sprintf("momenta of step %d", k), o.Momenta(), c.Momenta[k], 1e-12)
				}
				s.Step()
			}
		})
	}
}

// TestGoldenPlateau follows PyTorch's ReduceLROnPlateau.
func TestGoldenPlateau(t *testing.T) {
	for _, c := range goldens(t, func(c goldenCase) bool { return c.Metrics != nil }) {
		t.Run(c.String(), func(t *testing.T) {
			o := builders[c.Optimizer](t, goldenParams[float64](), c.Groups)
			r, err := NewReduceLROnPlateau(o, decoded[PlateauConfig](t, c.Schedule[1]))
			if err != nil {
				t.Fatal(err)
			}
			for k, metric := range c.Metrics {
				near(t, fmt.Sprintf("rates of step %d", k), o.Rates(), c.Rates[k], 1e-12)
				r.Step(metric)
			}
		})
	}
}

// TestGoldenClip follows PyTorch's clip_grad_norm_.
func TestGoldenClip(t *testing.T) {
	for _, c := range goldens(t, func(c goldenCase) bool { return c.Gradients != nil }) {
		goldenClip[float64](t, c, 1e-12)
		goldenClip[float32](t, c, 1e-6)
	}
}

func goldenClip[T real](t *testing.T, c goldenCase, tolerance float64) {
	t.Helper()
	params := goldenParams[T]()
	giveGradients[T](params, 0)
	norm, err := ClipGradNorm(params, c.Max)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "norm", []float64{norm}, []float64{c.Norm}, tolerance)
	for _, p := range params {
		p.Value = p.Grad
	}
	near(t, fmt.Sprintf("clipped to %v", c.Max), values[T](params), c.Gradients, tolerance)
}
