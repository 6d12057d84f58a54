package tensor_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"peermesh/ops/tensor"
	"peermesh/ops/tensor/tensortest"
)

// steps are the ops that take one, with what it does.
var steps = []struct {
	op   tensor.Op
	take func(op tensor.Op, x tensor.Tensor) error
	want func(p []byte, t tensor.DType)
}{
	{tensor.PremulSum(3), tensor.Op.Before, func(p []byte, t tensor.DType) { tensortest.Scale(p, t, 3) }},
	{tensor.PremulSum(1. / 3), tensor.Op.Before, func(p []byte, t tensor.DType) { tensortest.Scale(p, t, 1./3) }},
	{tensor.PremulSum(-7), tensor.Op.Before, func(p []byte, t tensor.DType) { tensortest.Scale(p, t, -7) }},
	{tensor.Avg, after(1), func(p []byte, t tensor.DType) { tensortest.Divide(p, t, 1) }},
	{tensor.Avg, after(3), func(p []byte, t tensor.DType) { tensortest.Divide(p, t, 3) }},
	{tensor.Avg, after(300), func(p []byte, t tensor.DType) { tensortest.Divide(p, t, 300) }},
}

func after(n int) func(op tensor.Op, x tensor.Tensor) error {
	return func(op tensor.Op, x tensor.Tensor) error { return op.After(x, n) }
}

// TestSteps compares the steps with the reference for every type, alignment and
// short length, and for some that cross the staged blocks.
func TestSteps(t *testing.T) {
	for _, dt := range tensortest.DTypes() {
		r := newSource(dt)
		for _, s := range steps {
			if s.op.Check(dt) != nil {
				continue
			}
			for at := range 2 * dt.Size() {
				for _, n := range []int{0, 1, 2, 3, 7, 8, 9, 33, 255, 256, 257, 1000} {
					p := aligned(at, n*dt.Size())
					r.draw(p)
					want := bytes.Clone(p)
					s.want(want, dt)
					if err := s.take(s.op, tensor.In(tensor.Host(p), dt, n)); err != nil {
						t.Fatal(err)
					}
					if !tensortest.Equal(p, want, dt) {
						t.Fatalf("%v of %d %v, %d off:\n got %x\nwant %x", s.op, n, dt, at, p, want)
					}
				}
			}
		}
	}
}

// TestStepsElsewhere takes them in a memory that does not lend its bytes, beyond
// what is staged at a time, and within bounds.
func TestStepsElsewhere(t *testing.T) {
	const n = 700_000 // int16: more than a block, and no whole number of them
	whole := tensor.New(tensor.Int16, n+2)
	x, _ := tensor.Data[int16](whole)
	for i := range x {
		x[i] = int16(i)
	}
	want := slices.Clone(x)
	for i := range want[1 : n+1] {
		want[i+1] = want[i+1] * 3 / 2
	}
	part := hidden(whole).Slice(1, n+1)
	if err := tensor.PremulSum(3).Before(part); err != nil {
		t.Fatal(err)
	}
	if err := tensor.Avg.After(part, 2); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(x, want) {
		t.Error("the elements differ from those worked out on the host")
	}
}

func TestStepsOfTheOthers(t *testing.T) {
	for _, dt := range tensortest.DTypes() {
		p := make([]byte, 64*dt.Size())
		tensortest.Fill(p, dt, rand.New(rand.NewPCG(1, 5)))
		x := tensor.In(tensor.Host(p), dt, 64)
		before := bytes.Clone(p)
		for _, op := range tensortest.Ops(dt) {
			isAvg := op == tensor.Avg
			isPremul := op == tensor.PremulSum(3)
			if op.Steps() != (isAvg || isPremul) {
				t.Errorf("%v takes steps: %v", op, op.Steps())
			}
			if !isPremul {
				if err := op.Before(x); err != nil {
					t.Error(err)
				}
			}
			if !isAvg {
				if err := op.After(x, 3); err != nil {
					t.Error(err)
				}
			}
		}
		if !bytes.Equal(p, before) {
			t.Errorf("%v: an op without steps changed the elements", dt)
		}
	}
}

// TestAvgTruncates pins the rounding of integers, and numbers of ranks that the
// type does not hold.
func TestAvgTruncates(t *testing.T) {
	small := []int8{-128, -7, -1, 0, 1, 7, 127}
	if err := tensor.Avg.After(tensor.Of(small), 2); err != nil || !slices.Equal(small, []int8{-64, -3, 0, 0, 0, 3, 63}) {
		t.Errorf("%v, %v", small, err)
	}
	small = []int8{-128, 127}
	if err := tensor.Avg.After(tensor.Of(small), 128); err != nil || !slices.Equal(small, []int8{-1, 0}) {
		t.Errorf("%v, %v", small, err)
	}
	big := []uint64{1<<64 - 1, 1 << 63}
	if err := tensor.Avg.After(tensor.Of(big), 2); err != nil || !slices.Equal(big, []uint64{1<<63 - 1, 1 << 62}) {
		t.Errorf("%v, %v", big, err)
	}
}

func TestStepErrors(t *testing.T) {
	x := tensor.New(tensor.Float32, 4)
	for _, n := range []int{0, -1} {
		if err := tensor.Avg.After(x, n); err == nil {
			t.Errorf("an average over %d ranks", n)
		}
	}
	for _, op := range []tensor.Op{tensor.Avg, tensor.PremulSum(2), tensor.Sum} {
		if op.Before(tensor.Tensor{}) == nil || op.After(tensor.Tensor{}, 1) == nil {
			t.Errorf("%v of the zero tensor: no error", op)
		}
	}
	short := tensor.In(opaque{make(tensor.Host, 8)}, tensor.Float32, 4)
	var out *tensor.RangeError
	if err := tensor.PremulSum(2).Before(short); !errors.As(err, &out) {
		t.Errorf("in a memory too small: %v", err)
	}
}

// A stepper counts the steps that it is asked to take, and takes none.
type stepper struct {
	tensor.Host
	factor   float64
	by       int
	off, len int64
}

func (s *stepper) ScaleAt(off, n int64, _ tensor.DType, factor float64) error {
	s.off, s.len, s.factor = off, n, factor
	return nil
}

func (s *stepper) DivideAt(off, n int64, _ tensor.DType, by int) error {
	s.off, s.len, s.by = off, n, by
	return nil
}

// TestStepper leaves the steps to a memory that can take them, with the tensor's range.
func TestStepper(t *testing.T) {
	m := &stepper{Host: make(tensor.Host, 40)}
	x := tensor.In(m, tensor.Float32, 10).Slice(2, 7)
	err := errors.Join(tensor.PremulSum(3).Before(x), tensor.Avg.After(x, 4), tensor.Sum.Before(x), tensor.Sum.After(x, 5))
	if err != nil || m.factor != 3 || m.by != 4 || m.off != 8 || m.len != 20 {
		t.Errorf("%+v, %v", m, err)
	}
	if factor, ok := tensor.PremulSum(3).Factor(); factor != 3 || !ok {
		t.Errorf("the factor is %v, %v", factor, ok)
	}
	if _, ok := tensor.Sum.Factor(); ok {
		t.Error("a sum has a factor")
	}
}
