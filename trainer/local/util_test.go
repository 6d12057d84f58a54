package local

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onEach runs f on every rank of a world, which ends with the first error of one.
func onEach(worlds []*memnet.World, f func(g *ops.Group) error) []error {
	errs := make([]error, len(worlds))
	var wg sync.WaitGroup
	for r, w := range worlds {
		wg.Go(func() {
			if errs[r] = f(ops.NewGroup(w, ops.Config{})); errs[r] != nil {
				w.End(errs[r])
			}
		})
	}
	wg.Wait()
	return errs
}

func noErrors(t *testing.T, errs []error) {
	t.Helper()
	for r, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
	}
}

// A pupil is one rank's model, w·x + b of 12 inputs and 5 outputs, with samples of its own
// of what a teacher says, in noise.
type pupil struct {
	w, b *trainer.Param
	x, y []float64
}

const inputs, outputs, samples = 12, 5, 24

func newPupil(t tensor.DType, rank int) *pupil {
	param := func(name string, shape ...int) *trainer.Param {
		return &trainer.Param{Name: name, Value: tensor.New(t, shape...), Grad: tensor.New(t, shape...)}
	}
	p := &pupil{w: param("w", outputs, inputs), b: param("b", outputs)}
	rng := rand.New(rand.NewPCG(uint64(rank), 1))
	for range samples * inputs {
		p.x = append(p.x, rng.NormFloat64())
	}
	teacher := rand.New(rand.NewPCG(99, 0))
	truth := make([]float64, outputs*inputs)
	for i := range truth {
		truth[i] = teacher.NormFloat64()
	}
	for s := range samples {
		for o := range outputs {
			y := float64(o) + 0.3*rng.NormFloat64()
			for i := range inputs {
				y += truth[o*inputs+i] * p.x[s*inputs+i]
			}
			p.y = append(p.y, y)
		}
	}
	return p
}

func (p *pupil) params() []*trainer.Param { return []*trainer.Param{p.w, p.b} }

// step leaves the gradient of the loss, which it returns.
func (p *pupil) step() float64 {
	if p.w.Value.DType() == tensor.Float32 {
		return pupilStep[float32](p)
	}
	return pupilStep[float64](p)
}

func pupilStep[T real](p *pupil) (loss float64) {
	w, b := elements[T](p.w.Value), elements[T](p.b.Value)
	gw, gb := elements[T](p.w.Grad), elements[T](p.b.Grad)
	clear(gw)
	clear(gb)
	for s := range samples {
		x := p.x[s*inputs:][:inputs]
		for o := range outputs {
			d := float64(b[o]) - p.y[s*outputs+o]
			for i, v := range x {
				d += float64(w[o*inputs+i]) * v
			}
			loss += d * d / (2 * samples * outputs)
			gb[o] += T(d / samples / outputs)
			for i, v := range x {
				gw[o*inputs+i] += T(d * v / samples / outputs)
			}
		}
	}
	return loss
}

// flat is the values of parameters, one after the other.
func flat(params []*trainer.Param) (all []float64) {
	for _, p := range params {
		for _, v := range elements[float32](p.Value) {
			all = append(all, float64(v))
		}
		all = append(all, elements[float64](p.Value)...)
	}
	return all
}

// apart is the greatest difference of two models.
func apart(a, b []float64) (most float64) {
	for i := range a {
		most = max(most, math.Abs(a[i]-b[i]))
	}
	return most
}

// same fails unless all ranks have the same text.
func same(t *testing.T, what string, all []string) {
	t.Helper()
	for r, s := range all {
		if s != all[0] {
			t.Errorf("%s: rank %d has %.12s, rank 0 %.12s", what, r, s, all[0])
		}
	}
}

func hash(t *testing.T, params []*trainer.Param) string {
	t.Helper()
	h, err := trainer.Hash(params)
	if err != nil {
		t.Error(err)
	}
	return fmt.Sprintf("%x", h)
}
