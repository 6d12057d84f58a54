package compress

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
	"peermesh/trainer/internal/finite"
)

// Columns come out orthonormal, whatever they were; those that could stay span the same.
func TestOrthonormalize(t *testing.T) {
	const n = 7
	dependent := normals(n*4, 1, 1)
	for i := range n {
		dependent[i*4+2] = 2*dependent[i*4] - dependent[i*4+1]
	}
	for name, c := range map[string]struct {
		x []float64
		r int
	}{
		"random": {normals(n*3, 2, 1e-20), 3}, "square": {normals(n*n, 3, 1e20), n},
		"zeros": {make([]float64, n*n), n}, "dependent": {dependent, 4},
		"units": {append(make([]float64, n*3-1), 1), 3},
	} {
		x, single := slices.Clone(c.x), singles(c.x)
		orthonormalize(x, n, c.r, 0)
		orthonormalize(single, n, c.r, 0)
		for a := range c.r {
			for b := range c.r {
				dot := 0.
				for i := range n {
					dot += x[i*c.r+a] * x[i*c.r+b]
				}
				if want := float64(b2i(a == b)); math.Abs(dot-want) > 1e-9 {
					t.Errorf("%s: columns %d and %d have the product %v", name, a, b, dot)
				}
			}
		}
		if !finite.All(single) {
			t.Errorf("%s: %v", name, single)
		}
	}
	x := []float64{3, 4}
	if orthonormalize(x, 2, 1, 5); !slices.Equal(x, []float64{0.3, 0.4}) {
		t.Errorf("with an epsilon: %v", x)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// What is compressed, and to what, is PyTorch's rule.
func TestPowerSGDPicksParameters(t *testing.T) {
	params := []*trainer.Param{
		matrixParam("vector", tensor.Float32, 100), matrixParam("scalar", tensor.Float32),
		matrixParam("worth", tensor.Float32, 9, 2, 4), // 72 elements, 17 a rank: more than twice
		matrixParam("not", tensor.Float32, 2, 2, 4),   // 16 elements, 10 a rank
		matrixParam("exactly", tensor.Float32, 6, 3),  // 18 elements, 9 a rank: twice
		{Name: "frozen", Value: tensor.New(tensor.Float32, 64, 64)},
		matrixParam("empty", tensor.Float32, 0, 4), matrixParam("double", tensor.Float64, 16, 16),
	}
	h, err := NewPowerSGD(params, PowerSGDConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range h.State() {
		names = append(names, fmt.Sprintf("%s %v", p.Name, p.Value))
	}
	want := "powersgd.step int64[1], worth.powersgd.q float32[8 1], double.powersgd.q float64[16 1]"
	if got := strings.Join(names, ", "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if h.c.Start != DefaultStart || h.c.MinRate != DefaultMinRate {
		t.Errorf("defaults: %+v", h.c)
	}
	for _, c := range []PowerSGDConfig{{Rank: -1}, {MinRate: math.NaN()}, {Epsilon: -1}} {
		if _, err := NewPowerSGD(params, c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}

// powerRun has n ranks reduce gradients for some steps by one hook each, and returns the
// bucket of each step and rank, and the hooks.
func powerRun(t *testing.T, n, steps int, c PowerSGDConfig, fill func(rank, step int, b trainer.Bucket)) ([][][]float64, []*PowerSGD) {
	t.Helper()
	out, hooks := make([][][]float64, n), make([]*PowerSGD, n)
	noErrors(t, each(memnet.New(n), func(g *ops.Group) error {
		params := []*trainer.Param{matrixParam("w", tensor.Float64, 12, 10), matrixParam("b", tensor.Float64, 12)}
		h, err := NewPowerSGD(params, c)
		if err != nil {
			return err
		}
		hooks[g.Rank()] = h
		b := bucket(0, params...)
		b.Last = true
		for step := range steps {
			fill(g.Rank(), step, b)
			if err := h.Reduce(t.Context(), g, b).Wait(); err != nil {
				return err
			}
			out[g.Rank()] = append(out[g.Rank()], slices.Clone(host[float64](b.Data)))
		}
		return nil
	}))
	for r := range out {
		for step := range steps {
			if fmt.Sprint(out[r][step]) != fmt.Sprint(out[0][step]) {
				t.Fatalf("step %d: ranks 0 and %d differ", step, r)
			}
		}
		for i, p := range hooks[r].State() {
			if string(bytesOf(p.Value)) != string(bytesOf(hooks[0].State()[i].Value)) {
				t.Fatalf("%s differs between ranks 0 and %d", p.Name, r)
			}
		}
	}
	return out, hooks
}

// A sum of the hook's rank is found at once and exactly; what has one dimension is summed
// as it is; before Start everything is.
func TestPowerSGDIsExactOnLowRank(t *testing.T) {
	const n = 3
	low := func(rank, step int, b trainer.Bucket) {
		u, v := normals(24, 1, 1), normals(20, uint64(rank+10*step), 1) // all ranks' sums have two columns' span
		for i := range 12 {
			for j := range 10 {
				host[float64](b.Data)[i*10+j] = u[i]*v[j] + u[12+i]*v[10+j]
			}
			host[float64](b.Data)[120+i] = float64(rank + i)
		}
	}
	full := func(rank, step int, b trainer.Bucket) { copy(host[float64](b.Data), normals(132, uint64(rank), 1)) }
	for name, c := range map[string]struct {
		config PowerSGDConfig
		fill   func(rank, step int, b trainer.Bucket)
		off    float64
	}{
		"low":          {PowerSGDConfig{Rank: 2, Start: -1}, low, 1e-9},
		"cold":         {PowerSGDConfig{Rank: 2, Start: -1, NoWarmStart: true, Seed: 3}, low, 1e-9},
		"float16":      {PowerSGDConfig{Rank: 2, Start: -1, Factors: Float16{}, NoFeedback: true}, low, 0.1},
		"before start": {PowerSGDConfig{Rank: 1, Start: 2}, full, 1e-12},
	} {
		out, _ := powerRun(t, n, 2, c.config, c.fill)
		for step := range out[0] {
			want := make([]float64, 132)
			for r := range n {
				b := bucket(0, matrixParam("", tensor.Float64, 132))
				c.fill(r, step, b)
				for i, v := range host[float64](b.Data) {
					want[i] += v
				}
			}
			for i, v := range out[0][step] {
				if math.Abs(v-want[i]) > c.off || i >= 120 && v != want[i] && name != "before start" {
					t.Fatalf("%s: step %d, element %d is %v, want %v", name, step, i, v, want[i])
				}
			}
		}
	}
}

// What a step leaves out, a later one has, and what a codec rounds off of its matrices, too:
// nothing is lost. With a warm start a gradient that stays is known ever better.
func TestPowerSGDFeedback(t *testing.T) {
	const n, steps = 3, 30
	same := func(rank, step int, b trainer.Bucket) { copy(host[float64](b.Data), normals(132, uint64(rank), 1)) }
	for _, factors := range []ops.Codec{nil, Float16{}, Int8(16)} {
		out, hooks := powerRun(t, n, steps, PowerSGDConfig{Rank: 2, Start: -1, Factors: factors}, same)
		off := 0.
		for i := range 132 {
			want, got := 0., 0.
			for r := range n {
				want += float64(steps) * normals(132, uint64(r), 1)[i]
				got += host[float64](hooks[r].flats[0].x)[i]
			}
			mean := 0.
			for step := range steps {
				got += out[0][step][i]
				mean += out[0][step][i] / steps
			}
			if math.Abs(got-want) > 1e-8 {
				t.Fatalf("factors in %T: element %d: %v was applied or is left, want %v", factors, i, got, want)
			}
			off = max(off, math.Abs(mean-want/steps))
		}
		if off > 0.5 {
			t.Errorf("factors in %T: the mean of what was applied is off by %v", factors, off)
		}
	}
}

// Gradients that vanish, or that are no numbers, are as they are for one step only.
func TestPowerSGDRecovers(t *testing.T) {
	for _, bad := range []float64{0, nan, inf} {
		out, _ := powerRun(t, 2, 3, PowerSGDConfig{Rank: 1, Start: -1}, func(rank, step int, b trainer.Bucket) {
			x := host[float64](b.Data)
			for i := range x {
				x[i] = float64(i%10 + 1)
			}
			if step == 1 {
				for i := range x {
					x[i] = bad
				}
			}
		})
		if last := out[0][2]; !finite.All(last) || math.Abs(last[3]-8) > 1e-6 {
			t.Errorf("after %v: %v", bad, last[:10])
		}
		if (bad-bad != 0) == finite.All(out[0][1]) {
			t.Errorf("%v became %v", bad, out[0][1][:4])
		}
	}
}

// A hook that is carried goes on as one that was there all along.
func TestPowerSGDStateIsWhole(t *testing.T) {
	fill := func(rank, step int, b trainer.Bucket) {
		copy(host[float64](b.Data), normals(132, uint64(rank+100*step), 1))
	}
	_, hooks := powerRun(t, 2, 3, PowerSGDConfig{Rank: 2, Start: 1}, fill)
	fresh, err := NewPowerSGD([]*trainer.Param{matrixParam("w", tensor.Float64, 12, 10), matrixParam("b", tensor.Float64, 12)}, PowerSGDConfig{Rank: 2, Start: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := trainer.LoadState(fresh.State(), hooks[0].State()); err != nil || fresh.step[0] != 3 {
		t.Errorf("step %d: %v", fresh.step[0], err)
	}
}
