package tensor_test

import (
	"bytes"
	"slices"
	"testing"

	"peermesh/ops/tensor"
	"peermesh/ops/tensor/tensortest"
)

// ownSum is Sum as a caller would write it.
func ownSum[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64]() tensor.Op {
	return tensor.Func("own sum", func(a, b T) T { return a + b })
}

var ownSums = map[tensor.DType]tensor.Op{
	tensor.Int8: ownSum[int8](), tensor.Int16: ownSum[int16](), tensor.Int32: ownSum[int32](), tensor.Int64: ownSum[int64](),
	tensor.Uint8: ownSum[uint8](), tensor.Uint16: ownSum[uint16](), tensor.Uint32: ownSum[uint32](), tensor.Uint64: ownSum[uint64](),
	tensor.Float32: ownSum[float32](), tensor.Float64: ownSum[float64](),
	tensor.Float16: tensor.Func("own sum", func(a, b tensor.F16) tensor.F16 {
		return tensor.ToF16(a.Float32() + b.Float32())
	}),
	tensor.BFloat16: tensor.Func("own sum", func(a, b tensor.BF16) tensor.BF16 {
		return tensor.ToBF16(a.Float32() + b.Float32())
	}),
	tensor.Bool: tensor.Func("own sum", func(a, b bool) bool { return a || b }),
}

// TestFunc compares a caller's sum with the reference for every type, in memory
// that lends its bytes and in memory that does not.
func TestFunc(t *testing.T) {
	for _, dt := range tensortest.DTypes() {
		op, ok := ownSums[dt]
		if !ok {
			t.Errorf("no function of %v", dt)
			continue
		}
		r := newSource(dt)
		for at := range dt.Size() * dt.Size() {
			for _, n := range []int{0, 1, 2, 5, 33, 255, 256, 257} {
				host, p := aligned(at/dt.Size(), n*dt.Size()), aligned(at%dt.Size(), n*dt.Size())
				r.draw(host)
				r.draw(p)
				want, other := bytes.Clone(host), tensor.Host(bytes.Clone(host))
				tensortest.Reduce(want, p, dt, tensor.Sum)
				if err := tensor.Host(host).ReduceAt(p, 0, dt, op); err != nil {
					t.Fatal(err)
				}
				if err := tensor.In(opaque{other}, dt, n).ReduceAt(p, 0, op); err != nil {
					t.Fatal(err)
				}
				if !tensortest.Equal(host, want, dt) || !tensortest.Equal(other, want, dt) {
					t.Fatalf("%v of %d %v:\n got %x\n and %x\nwant %x", op, n, dt, host, other, want)
				}
			}
		}
	}
}

// TestFuncElsewhere folds more than a block into the middle of a memory that
// refuses functions, as a GPU's does.
func TestFuncElsewhere(t *testing.T) {
	const n = 300_000
	x := make([]int64, n+2)
	sent := make([]int64, n)
	for i := range sent {
		x[i+1], sent[i] = int64(i), 7
	}
	message := tensor.Of(sent)
	p, _ := message.View(0, message.Bytes())
	max := tensor.Func("max", func(a, b int64) int64 { return max(a, b) })
	if err := hidden(tensor.Of(x)).ReduceAt(p, 8, max); err != nil {
		t.Fatal(err)
	}
	if x[0] != 0 || x[1] != 7 || x[8] != 7 || x[9] != 8 || x[n] != n-1 || x[n+1] != 0 {
		t.Errorf("%v … %v", x[:12], x[n-2:])
	}
	if n := testing.AllocsPerRun(10, func() { _ = tensor.Of(x).ReduceAt(p, 8, max) }); n > 2 {
		t.Errorf("%v allocations", n)
	}
}

// TestFuncNeverSeesAnotherBool hands a function bytes that are no bools.
func TestFuncNeverSeesAnotherBool(t *testing.T) {
	var seen []byte
	op := tensor.Func("spy", func(a, b bool) bool {
		seen = append(seen, byteOf(a), byteOf(b))
		return a != b
	})
	h := tensor.Host{0, 1, 2, 255, 128}
	if err := h.ReduceAt([]byte{2, 3, 0, 1, 7}, 0, tensor.Bool, op); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seen, []byte{0, 1, 1, 1, 1, 0, 1, 1, 1, 1}) || !slices.Equal(h, tensor.Host{1, 0, 1, 0, 0}) {
		t.Errorf("saw %v, left %v", seen, h)
	}
}

// byteOf is a bool's byte as it lies in memory.
func byteOf(b bool) byte {
	p, _ := tensor.Of([]bool{b}).View(0, 1)
	return p[0]
}
