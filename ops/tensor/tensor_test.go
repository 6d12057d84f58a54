package tensor_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"peermesh/ops/tensor"
)

func TestOf(t *testing.T) {
	x := []int32{1, 2, 3}
	v := tensor.Of(x)
	if v.DType() != tensor.Int32 || v.Len() != 3 || v.Bytes() != 12 || v.Offset() != 0 || !slices.Equal(v.Shape(), []int{3}) {
		t.Errorf("%v: %d elements, %d bytes at %d", v, v.Len(), v.Bytes(), v.Offset())
	}
	if _, err := v.WriteAt([]byte{7, 1, 0, 0}, 4); err != nil {
		t.Fatal(err)
	}
	if x[1] != 263 {
		t.Errorf("x[1] = %d after writing little-endian 263 through its tensor", x[1])
	}
	y, ok := tensor.Data[int32](v)
	if !ok || &y[0] != &x[0] || len(y) != 3 || cap(y) != 3 {
		t.Errorf("Data: %v, %v, not the slice that Of was given", y, ok)
	}
}

func TestOfNothing(t *testing.T) {
	for _, v := range []tensor.Tensor{tensor.Of[float64](nil), tensor.Of([]float64{}), tensor.New(tensor.Float64, 2, 0), tensor.Of([]float64{1}).Slice(1, 1)} {
		if v.Len() != 0 || v.Bytes() != 0 {
			t.Errorf("%v: %d elements", v, v.Len())
		}
		if x, ok := tensor.Data[float64](v); !ok || len(x) != 0 {
			t.Errorf("%v: Data %v, %v", v, x, ok)
		}
		if err := v.ReduceAt(nil, 0, tensor.Sum); err != nil {
			t.Errorf("%v: %v", v, err)
		}
		if _, err := v.ReadAt(make([]byte, 1), 0); err == nil {
			t.Errorf("%v: read a byte of no elements", v)
		}
	}
}

// TestZero checks that the zero Tensor, an absent gradient, gives errors and
// not panics.
func TestZero(t *testing.T) {
	var z tensor.Tensor
	if z.Memory() != nil || z.Len() != 0 || z.Bytes() != 0 || z.DType().Valid() {
		t.Errorf("the zero tensor is %v in %v", z, z.Memory())
	}
	if _, err := z.ReadAt(make([]byte, 1), 0); err == nil {
		t.Error("ReadAt: no error")
	}
	if err := z.ReduceAt(nil, 0, tensor.Sum); err == nil {
		t.Error("ReduceAt: no error")
	}
	if _, ok := z.View(0, 0); ok {
		t.Error("View lends bytes of no memory")
	}
	if _, ok := tensor.Data[float32](z); ok {
		t.Error("Data finds elements")
	}
}

func TestNewIsAlignedAndZero(t *testing.T) {
	for n := range 70 {
		x, ok := tensor.Data[float32](tensor.New(tensor.Float32, n))
		if !ok || len(x) != n || slices.ContainsFunc(x, func(v float32) bool { return v != 0 }) {
			t.Fatalf("New of %d: %v, %v", n, x, ok)
		}
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(x))); n > 0 && at%64 != 0 {
			t.Errorf("New of %d is at %#x", n, at)
		}
	}
}

func TestSlice(t *testing.T) {
	x := []float64{0, 1, 2, 3, 4, 5}
	m, err := tensor.Of(x).Reshape(2, 3)
	if err != nil {
		t.Fatal(err)
	}
	s := m.Slice(1, 5).Slice(1, 3)
	if got, ok := tensor.Data[float64](s); !ok || !slices.Equal(got, []float64{2, 3}) {
		t.Errorf("%v, %v", got, ok)
	}
	if s.Offset() != 16 || !slices.Equal(s.Shape(), []int{2}) {
		t.Errorf("%v at %d", s, s.Offset())
	}
	// A slice ends where it ends, though its memory goes on.
	if _, err := s.ReadAt(make([]byte, 8), 16); err == nil {
		t.Error("read past the slice")
	}
	if _, err := s.WriteAt(make([]byte, 8), -8); err == nil {
		t.Error("wrote before the slice")
	}
	var out *tensor.RangeError
	if err := s.ReduceAt(make([]byte, 24), 0, tensor.Sum); !errors.As(err, &out) || out.Size != 16 {
		t.Errorf("reduced past the slice: %v", err)
	}
	if _, ok := s.View(8, 16); ok {
		t.Error("viewed past the slice")
	}
	if err := s.ReduceAt([]byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, 8, tensor.Sum); err != nil || x[3] != 4 {
		t.Errorf("x[3] = %v after adding 1: %v", x[3], err)
	}
	if n := testing.AllocsPerRun(10, func() { s = m.Slice(2, 4) }); n != 0 {
		t.Errorf("Slice allocates %v times", n)
	}
}

func TestReshape(t *testing.T) {
	v := tensor.New(tensor.Uint8, 2, 3)
	for _, shape := range [][]int{{6}, {3, 2}, {1, 6, 1}} {
		if r, err := v.Reshape(shape...); err != nil || !slices.Equal(r.Shape(), shape) || r.Len() != 6 {
			t.Errorf("%v: %v, %v", shape, r, err)
		}
	}
	for _, shape := range [][]int{{}, {5}, {-2, -3}, {-6}, {math.MaxInt, math.MaxInt}, {0, 6}} {
		if r, err := v.Reshape(shape...); err == nil {
			t.Errorf("%v: %v, want an error", shape, r)
		} else if !strings.HasPrefix(err.Error(), "tensor: reshape of uint8[2 3]") {
			t.Error(err)
		}
	}
	shape := []int{3, 2}
	r, err := v.Reshape(shape...)
	if err != nil {
		t.Fatal(err)
	}
	shape[0] = 9
	r.Shape()[1] = 9
	if !slices.Equal(r.Shape(), []int{3, 2}) {
		t.Errorf("the caller's slices changed the shape to %v", r.Shape())
	}
}

func TestScalar(t *testing.T) {
	v := tensor.New(tensor.Int64)
	if v.Len() != 1 || len(v.Shape()) != 0 || v.String() != "int64[]" {
		t.Errorf("%v of %d elements", v, v.Len())
	}
}

func TestPanics(t *testing.T) {
	v := tensor.New(tensor.Float32, 4)
	for name, f := range map[string]func(){
		"negative dimension":     func() { tensor.New(tensor.Float32, 2, -1) },
		"two negatives":          func() { tensor.In(v.Memory(), tensor.Float32, -2, -2) },
		"size overflows":         func() { tensor.New(tensor.Float64, math.MaxInt/4) },
		"product overflows":      func() { tensor.In(v.Memory(), tensor.Uint8, math.MaxInt, 2) },
		"zero type":              func() { tensor.New(0, 1) },
		"unknown type":           func() { tensor.In(v.Memory(), 200, 1) },
		"slice beyond the end":   func() { v.Slice(0, 5) },
		"slice before the start": func() { v.Slice(-1, 2) },
		"slice backwards":        func() { v.Slice(3, 2) },
	} {
		func() {
			defer func() {
				if s, ok := recover().(string); !ok || !strings.HasPrefix(s, "tensor: ") {
					t.Errorf("%s: panic %q", name, s)
				}
			}()
			f()
		}()
	}
}

func TestData(t *testing.T) {
	v := tensor.New(tensor.Float32, 4)
	if _, ok := tensor.Data[int32](v); ok {
		t.Error("float32 elements as int32")
	}
	if _, ok := tensor.Data[float32](tensor.In(opaque{v.Memory()}, tensor.Float32, 4)); ok {
		t.Error("elements of a memory that lends none")
	}
	if _, ok := tensor.Data[float32](tensor.In(v.Memory(), tensor.Float32, 5)); ok {
		t.Error("more elements than the memory has")
	}
	odd := tensor.Host(aligned(1, 16))
	if _, ok := tensor.Data[float32](tensor.In(odd, tensor.Float32, 4)); ok {
		t.Error("elements at an odd address")
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		tensor.New(tensor.Float32, 2, 3).String(): "float32[2 3]",
		tensor.Of([]uint8{1, 2}).String():         "uint8[2]",
		tensor.Tensor{}.String():                  "dtype(0)[0]",
		tensor.Float64.String():                   "float64",
		tensor.DType(77).String():                 "dtype(77)",
		tensor.Product.String():                   "product",
		tensor.Op{}.String():                      "op(0)",
		tensor.OpCode(77).String():                "op(77)",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestWireValues pins what travels in messages.
func TestWireValues(t *testing.T) {
	for i, want := range []struct {
		t    tensor.DType
		name string
		size int
	}{
		{tensor.Float32, "float32", 4}, {tensor.Float64, "float64", 8}, {tensor.Int32, "int32", 4},
		{tensor.Int64, "int64", 8}, {tensor.Uint8, "uint8", 1}, {tensor.Float16, "float16", 2},
		{tensor.BFloat16, "bfloat16", 2}, {tensor.Int8, "int8", 1}, {tensor.Int16, "int16", 2},
		{tensor.Uint16, "uint16", 2}, {tensor.Uint32, "uint32", 4}, {tensor.Uint64, "uint64", 8},
		{tensor.Bool, "bool", 1},
	} {
		if got := tensor.DType(i + 1); got != want.t || got.String() != want.name || got.Size() != want.size || !got.Valid() {
			t.Errorf("type %d is %v of %d bytes, want %s of %d", i+1, got, got.Size(), want.name, want.size)
		}
	}
	for _, i := range []uint8{0, 14, 255} {
		if tensor.DType(i).Valid() || tensor.DType(i).Size() != 0 {
			t.Errorf("type %d is valid", i)
		}
	}
}
