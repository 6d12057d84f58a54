package fit

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wave is a small model: y = Σ w[k]·sin((k+1)x) + offset, under a squared error. It fails
// and panics when it is told to.
type wave struct {
	params  []*trainer.Param
	w, grad []float64
	b, bias []float64
	calls   int
	before  func(call int) error
	step    int64
}

const waves = 5

func newWave() *wave {
	m := &wave{w: make([]float64, waves), grad: make([]float64, waves), b: make([]float64, 1), bias: make([]float64, 1)}
	m.params = []*trainer.Param{{Name: "w", Value: tensor.Of(m.w), Grad: tensor.Of(m.grad)}, {Name: "b", Value: tensor.Of(m.b), Grad: tensor.Of(m.bias)}}
	return m
}

func (m *wave) Params() []*trainer.Param { return m.params }
func (m *wave) SetStep(step int64)       { m.step = step }

func truth(x float64) float64 { return math.Sin(x) - math.Sin(3*x)/2 + 0.25 }

func (m *wave) wrong(x float64) float64 {
	y := m.b[0]
	for k, w := range m.w {
		y += w * math.Sin(float64(k+1)*x)
	}
	return y - truth(x)
}

func (m *wave) ForwardBackward(_ context.Context, batch []float64, ready func(i int)) (loss float64, err error) {
	m.calls++
	if m.before != nil {
		if err := m.before(m.calls); err != nil {
			return 0, err
		}
	}
	clear(m.grad)
	clear(m.bias)
	n := float64(len(batch))
	for _, x := range batch {
		wrong := m.wrong(x)
		loss += wrong * wrong / n
		for k := range m.grad {
			m.grad[k] += 2 * wrong * math.Sin(float64(k+1)*x) / n
		}
		m.bias[0] += 2 * wrong / n
	}
	ready(1)
	ready(0)
	return loss, nil
}

func (m *wave) evaluate(_ context.Context, batch []float64) (Metrics, error) {
	var loss float64
	for _, x := range batch {
		loss += m.wrong(x) * m.wrong(x) / float64(len(batch))
	}
	return Metrics{"loss": loss, "count": 1}, nil
}

func points(n int, c trainer.ElasticConfig) Samples[[]float64] {
	return Samples[[]float64]{N: n, Deal: c, Load: func(_ context.Context, indices []int) ([]float64, error) {
		var batch []float64
		for _, i := range indices {
			batch = append(batch, float64(i)/float64(n)*2*math.Pi)
		}
		return batch, nil
	}}
}

func adam(params []*trainer.Param) (trainer.Optimizer, error) {
	return trainer.NewAdam(params, trainer.AdamConfig{LR: 0.05})
}

// basic is 3 epochs of 7 steps, the last of which is short.
func basic(m *wave) *Trainer[[]float64] {
	return &Trainer[[]float64]{
		Model: m, Optimizer: adam, Epochs: 3,
		Train: points(50, trainer.ElasticConfig{Shuffle: true, Global: 8}),
		Valid: points(13, trainer.ElasticConfig{Batch: 2}), Evaluate: m.evaluate,
	}
}

// ranks runs f on every rank of one world, in virtual time.
func ranks(t *testing.T, n int, f func(rank int, w *memnet.World) error) []error {
	t.Helper()
	errs := make([]error, n)
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		for rank, w := range memnet.New(n) {
			all.Go(func() { errs[rank] = f(rank, w) })
		}
		all.Wait()
	})
	return errs
}

// fits trains a model on each of n ranks, with what change makes of basic.
func fits(t *testing.T, n int, change func(rank int, tr *Trainer[[]float64])) ([]*wave, []error) {
	t.Helper()
	models := make([]*wave, n)
	errs := ranks(t, n, func(rank int, w *memnet.World) error {
		models[rank] = newWave()
		tr := basic(models[rank])
		change(rank, tr)
		return tr.Fit(context.Background(), w)
	})
	return models, errs
}

func none(t *testing.T, errs []error) {
	t.Helper()
	for rank, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
}

// same checks that all ranks have the same bits, and returns them.
func same(t *testing.T, models []*wave) []float64 {
	t.Helper()
	first := append(append([]float64(nil), models[0].w...), models[0].b[0])
	for rank, m := range models {
		for i, v := range append(append([]float64(nil), m.w...), m.b[0]) {
			if math.Float64bits(v) != math.Float64bits(first[i]) {
				t.Fatalf("rank %d has %v for %v in parameter %d", rank, v, first[i], i)
			}
		}
	}
	return first
}

// near checks two sets of parameters.
func near(t *testing.T, what string, got, want []float64, within float64) {
	t.Helper()
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= within) {
			t.Errorf("%s: parameter %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}
