package ops_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet/memnet"
)

var _ ops.Transport = (*memnet.World)(nil)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world runs f on every rank of a world of n at once and returns their errors.
func world(n int, c ops.Config, f func(g *ops.Group) error) []error {
	return on(memnet.New(n), c, f)
}

func on(worlds []*memnet.World, c ops.Config, f func(g *ops.Group) error) []error {
	groups := make([]*ops.Group, len(worlds))
	for r, w := range worlds {
		groups[r] = ops.NewGroup(w, c)
	}
	return each(groups, f)
}

func each(groups []*ops.Group, f func(g *ops.Group) error) []error {
	errs := make([]error, len(groups))
	var wg sync.WaitGroup
	for r, g := range groups {
		wg.Go(func() { errs[r] = f(g) })
	}
	wg.Wait()
	return errs
}

// check fails the test for every rank's error.
func check(t *testing.T, errs []error) {
	t.Helper()
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// filled is a tensor of random elements: of small values, so that products stay
// in range; whole ones for floats when exact, so that any order sums alike.
func filled(t tensor.DType, n int, seed uint64, exact bool) tensor.Tensor {
	rng := rand.New(rand.NewPCG(seed, 7))
	switch t {
	case tensor.Float32:
		return tensor.Of(fill(n, func() float32 { return float32(value(rng, exact)) }))
	case tensor.Float64:
		return tensor.Of(fill(n, func() float64 { return value(rng, exact) }))
	case tensor.Int32:
		return tensor.Of(fill(n, func() int32 { return int32(rng.Uint32()) }))
	case tensor.Int64:
		return tensor.Of(fill(n, func() int64 { return int64(rng.Uint64()) }))
	case tensor.Uint8:
		return tensor.Of(fill(n, func() uint8 { return uint8(rng.Uint32()) }))
	}
	panic(fmt.Sprintf("no elements of %v", t))
}

func value(rng *rand.Rand, exact bool) float64 {
	if exact {
		return float64(rng.IntN(9) - 4)
	}
	return rng.NormFloat64()
}

func fill[T any](n int, f func() T) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = f()
	}
	return x
}

func bytesOf(x tensor.Tensor) []byte {
	p := make([]byte, x.Bytes())
	if _, err := x.ReadAt(p, 0); err != nil {
		panic(err)
	}
	return p
}

func clone(x tensor.Tensor) tensor.Tensor {
	c := tensor.New(x.DType(), x.Len())
	if err := tensor.Copy(c, x); err != nil {
		panic(err)
	}
	return c
}

// folded is op over xs, by the kernels of package tensor, one after the other.
func folded(xs []tensor.Tensor, op tensor.Op) tensor.Tensor {
	sum := clone(xs[0])
	for _, x := range xs[1:] {
		if err := sum.ReduceAt(bytesOf(x), 0, op); err != nil {
			panic(err)
		}
	}
	return sum
}

var ctx = context.Background()
