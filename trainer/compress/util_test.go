package compress

import (
	"sync"
	"testing"

	"go.uber.org/goleak"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
	"peermesh/trainer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// each runs f on every rank of a world, which ends with the first error of one.
func each(worlds []*memnet.World, f func(g *ops.Group) error) []error {
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

// matrixParam is a parameter of zeros with a gradient.
func matrixParam(name string, t tensor.DType, shape ...int) *trainer.Param {
	return &trainer.Param{Name: name, Value: tensor.New(t, shape...), Grad: tensor.New(t, shape...)}
}
