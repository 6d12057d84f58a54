package gpu

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"peermesh/gpu/internal/ptx"
	"peermesh/ops/tensor"
	"peermesh/ops/tensor/tensortest"
)

// TestShippedKernels interprets the kernels as they are shipped, and compares their results
// with the host's arithmetic, bit for bit: every fold and every step of every type.
func TestShippedKernels(t *testing.T) {
	kernels, err := ptx.Parse(kernelText)
	if err != nil {
		t.Fatal(err)
	}
	const n = 200
	rng := rand.New(rand.NewPCG(3, 4))
	used := make(map[string]bool)
	try := func(dtype tensor.DType, name string, src []byte, operand uint64, want func(p []byte)) {
		t.Helper()
		k := kernels[name]
		if k == nil {
			t.Errorf("there is no kernel %s", name)
			return
		}
		used[name] = true
		p := make([]byte, n*dtype.Size())
		tensortest.Fill(p, dtype, rng)
		q := bytes.Clone(p)
		want(q)
		var second any = operand
		if src != nil {
			second = src
		}
		if err := k.Run(2, 4, p, second, uint64(n)); err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if !bytes.Equal(p, q) && !tensortest.Equal(p, q, dtype) {
			t.Errorf("%s for %v differs from the host's", name, dtype)
		}
	}
	for _, dtype := range tensortest.DTypes() {
		for _, op := range tensortest.Ops(dtype) {
			src := make([]byte, n*dtype.Size())
			tensortest.Fill(src, dtype, rng)
			try(dtype, foldName(dtype, op), src, 0, func(p []byte) { tensortest.Reduce(p, src, dtype, op) })
		}
		if tensor.Avg.Check(dtype) != nil {
			continue
		}
		for _, by := range []int{1, 3, 300} {
			try(dtype, "divide_"+dtype.String(), nil, operand(dtype, float64(by), int64(by), uint64(by)), func(p []byte) { tensortest.Divide(p, dtype, by) })
		}
		for _, factor := range []float64{3, -7, .1} {
			if tensor.PremulSum(factor).Check(dtype) == nil {
				try(dtype, "scale_"+unsigned(dtype).String(), nil, operand(dtype, factor, int64(factor), uint64(factor)),
					func(p []byte) { tensortest.Scale(p, dtype, factor) })
			}
		}
	}
	if len(used) != len(kernels) {
		t.Errorf("%d of %d kernels were tried", len(used), len(kernels))
	}
}
