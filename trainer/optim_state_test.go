package trainer

import (
	"fmt"
	"strings"
	"testing"

	"peermesh/ops/tensor"
)

// copies has the names and values of a state, as a checkpoint would.
func copies(t *testing.T, state []*Param) []*Param {
	t.Helper()
	var saved []*Param
	for _, p := range state {
		c := &Param{Name: p.Name, Value: tensor.New(p.Value.DType(), p.Value.Shape()...)}
		if err := tensor.Copy(c.Value, p.Value); err != nil {
			t.Fatal(err)
		}
		saved = append(saved, c)
	}
	return saved
}

func hashOf(t *testing.T, params []*Param) [32]byte {
	t.Helper()
	h, err := Hash(params)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// A run is parameters, an optimiser and a schedule of either kind.
type run struct {
	params   []*Param
	o        Optimizer
	schedule *Schedule
	plateau  *ReduceLROnPlateau
}

func newRun(t *testing.T, params []*Param, build func(params []*Param) (Optimizer, error)) *run {
	t.Helper()
	o, err := build(params)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{params: params, o: o}
	if len(params)%2 == 0 {
		r.schedule, err = NewSchedule(o, OneCycle{Steps: 12, KeepMomentum: len(o.Momenta()) == 0 || o.Momenta()[0] == 0})
	} else {
		r.plateau, err = NewReduceLROnPlateau(o, PlateauConfig{Patience: 1, Cooldown: 1})
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// all is what a checkpoint must hold.
func (r *run) all() []*Param {
	all := append(r.o.State(), r.params...)
	if r.schedule != nil {
		return append(all, r.schedule.State()...)
	}
	return append(all, r.plateau.State()...)
}

func (r *run) steps(t *testing.T, from, to int, give func(params []*Param, step int)) {
	t.Helper()
	for k := from; k < to; k++ {
		give(r.params, k)
		step(t, r.o)
		if r.schedule != nil {
			r.schedule.Step()
		} else {
			r.plateau.Step(1)
		}
	}
}

// TestRestore saves a run after its fifth step and restores it in another, which
// must go on like the first to the last bit.
func TestRestore(t *testing.T) {
	for name, build := range optimizers {
		for kind, c := range map[string]struct {
			params func() []*Param
			give   func(params []*Param, step int)
		}{
			"float32":          {goldenParams[float32], giveGradients[float32]},
			"float64":          {goldenParams[float64], giveGradients[float64]},
			"float64, plateau": {func() []*Param { return goldenParams[float64]()[:1] }, giveGradients[float64]},
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				first := newRun(t, c.params(), build)
				empty := hashOf(t, first.all())
				first.steps(t, 0, 5, c.give)
				saved := copies(t, first.all())
				first.steps(t, 5, 10, c.give)

				second := newRun(t, c.params(), build)
				if hashOf(t, second.all()) != empty {
					t.Fatal("two runs that begin differ")
				}
				second.steps(t, 0, 2, c.give) // elsewhere
				if err := LoadState(second.all(), saved); err != nil {
					t.Fatal(err)
				}
				if hashOf(t, second.all()) != hashOf(t, saved) {
					t.Fatal("not what was saved")
				}
				second.steps(t, 5, 10, c.give)
				if hashOf(t, second.all()) != hashOf(t, first.all()) {
					t.Error("the restored run goes another way")
				}
			})
		}
	}
}

// TestState lists what each optimiser remembers: a checkpoint's format.
func TestState(t *testing.T) {
	for name, want := range map[string]string{
		"SGD":                  "step momentum_buffer; lr momentum",
		"SGD without momentum": "step; lr momentum",
		"Adadelta":             "step square_avg acc_delta; lr",
		"Adagrad":              "step sum; lr",
		"Adam":                 "step exp_avg exp_avg_sq max_exp_avg_sq; lr momentum",
		"AdamW":                "step exp_avg exp_avg_sq; lr momentum",
		"RMSprop":              "step square_avg grad_avg momentum_buffer; lr momentum",
		"LAMB":                 "step exp_avg exp_avg_sq; lr momentum",
		"Lion":                 "step exp_avg; lr momentum",
	} {
		params := []*Param{
			{Name: "fc.weight", Value: tensor.New(tensor.Float32, 2, 3)},
			{Name: "fc.bias", Value: tensor.New(tensor.Float64, 2)},
		}
		o, err := optimizers[name](params)
		if err != nil {
			t.Fatal(err)
		}
		each, all, _ := strings.Cut(want, "; ")
		var lines []string
		for _, p := range params {
			for slot := range strings.FieldsSeq(each) {
				v := p.Value.String()
				if slot == "step" {
					v = "int64[1]"
				}
				lines = append(lines, fmt.Sprintf("%s.%s %s", p.Name, slot, v))
			}
		}
		for what := range strings.FieldsSeq(all) {
			lines = append(lines, what+" float64[1]")
		}
		for when := range 2 {
			var got []string
			for _, p := range o.State() {
				got = append(got, p.Name+" "+p.Value.String())
			}
			if strings.Join(got, "\n") != strings.Join(lines, "\n") {
				t.Errorf("%s after %d steps: %q, want %q", name, when, got, lines)
			}
			params[0].Grad = tensor.New(tensor.Float32, 2, 3)
			step(t, o)
		}
	}
}

// TestLoadStateRefuses tells what cannot be loaded before it copies anything.
func TestLoadStateRefuses(t *testing.T) {
	f := func(name string, x ...float64) *Param { return &Param{Name: name, Value: tensor.Of(x)} }
	for want, c := range map[string]struct{ dst, src []*Param }{
		`"b" is missing`:                      {[]*Param{f("a", 0), f("b", 0)}, []*Param{f("a", 1)}},
		`"a" is given twice`:                  {[]*Param{f("a", 0)}, []*Param{f("a", 1), f("a", 2)}},
		`two tensors are named "a"`:           {[]*Param{f("a", 0), f("a", 0)}, []*Param{f("a", 1)}},
		`"b" is float64[2], want float64[1]`:  {[]*Param{f("a", 0), f("b", 0)}, []*Param{f("a", 1), f("b", 1, 2)}},
		`"b" is int64[1], want float64[1]`:    {[]*Param{f("a", 0), f("b", 0)}, []*Param{f("a", 1), {Name: "b", Value: tensor.Of([]int64{1})}}},
		`"b" is float64[1 1], want float64[1`: {[]*Param{f("a", 0), f("b", 0)}, []*Param{f("a", 1), {Name: "b", Value: tensor.New(tensor.Float64, 1, 1)}}},
	} {
		err := LoadState(c.dst, c.src)
		if err == nil || !strings.HasPrefix(err.Error(), "trainer: load state: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if data[float64](c.dst[0].Value)[0] != 0 {
			t.Errorf("%q: something was copied", want)
		}
	}
	a := f("a", 0)
	if err := LoadState([]*Param{a}, []*Param{f("z", 9), f("a", 7)}); err != nil || data[float64](a.Value)[0] != 7 {
		t.Errorf("%v, %v", err, data[float64](a.Value))
	}
}
