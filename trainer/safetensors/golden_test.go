package safetensors_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/safetensors"
)

// want is what testdata/golden.py has written.
func want() []*trainer.Param {
	shaped := func(t tensor.Tensor, shape ...int) tensor.Tensor {
		t, err := t.Reshape(shape...)
		if err != nil {
			panic(err)
		}
		return t
	}
	return []*trainer.Param{
		{Name: "u64", Value: tensor.Of([]uint64{math.MaxUint64})},
		{Name: "i64", Value: tensor.Of([]int64{math.MinInt64, math.MaxInt64})},
		{Name: "f64", Value: shaped(tensor.Of([]float64{1, math.Copysign(0, -1), 1e-300, math.Inf(1)}), 2, 2)},
		{Name: "weight", Value: shaped(tensor.Of([]float32{0, 1, -2.5, 3.25, 1e-30, -1e30}), 2, 3)},
		{Name: "u32", Value: shaped(tensor.Of([]uint32{math.MaxUint32}), 1, 1, 1)},
		{Name: "i32", Value: tensor.Of([]int32{math.MinInt32, 7})},
		{Name: "bf16", Value: tensor.Of([]tensor.BF16{tensor.ToBF16(1), tensor.ToBF16(-2.5)})},
		{Name: "half", Value: tensor.Of([]tensor.F16{tensor.ToF16(1), tensor.ToF16(-2.5), tensor.ToF16(65504)})},
		{Name: "u16", Value: shaped(tensor.Of([]uint16{65535}))},
		{Name: "i16", Value: tensor.Of([]int16{math.MinInt16, math.MaxInt16})},
		{Name: "i8", Value: tensor.Of([]int8{-128, 127})},
		{Name: "u8", Value: tensor.Of([]uint8{0, 1, 255})},
		{Name: "bool é\"<", Value: tensor.Of([]bool{true, false})},
		{Name: "empty", Value: shaped(tensor.Of([]bool{}), 3, 0)},
	}
}

var metadata = map[string]string{"format": "pt", "made by": "golden.py"}

// equal compares names, types, shapes and bytes.
func equal(t *testing.T, got, want []*trainer.Param) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d tensors, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if g.Name != w.Name || g.Value.String() != w.Value.String() || !bytes.Equal(elements(t, g.Value), elements(t, w.Value)) {
			t.Errorf("%q %v, want %q %v; or their elements differ", g.Name, g.Value, w.Name, w.Value)
		}
	}
}

func elements(t *testing.T, x tensor.Tensor) []byte {
	t.Helper()
	p := make([]byte, x.Bytes())
	if _, err := x.ReadAt(p, 0); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestReadsWhatPythonWrote(t *testing.T) {
	for _, name := range []string{"golden", "shuffled"} {
		f, err := safetensors.Open(filepath.Join("testdata", name+".safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.Params()
		if err != nil {
			t.Fatal(err)
		}
		expected := want()
		if name == "shuffled" {
			expected = slices.Concat(expected[3:], expected[:3]) // as they lie
		}
		equal(t, got, expected)
		if !reflect.DeepEqual(f.Metadata(), metadata) {
			t.Errorf("%s: metadata %v", name, f.Metadata())
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Whatever order the parameters come in, the file is the one that the format's own
// library would have laid out, to the last byte.
func TestWritesWhatPythonWrote(t *testing.T) {
	golden, err := os.ReadFile("testdata/golden.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	params := want()
	slices.Reverse(params)
	var b bytes.Buffer
	if err := safetensors.Write(&b, params, safetensors.Options{Metadata: metadata}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), golden) {
		t.Errorf("wrote\n%q, want\n%q", b.Bytes(), golden)
	}
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := safetensors.Save(path, params, safetensors.Options{Metadata: metadata}); err != nil {
		t.Fatal(err)
	}
	if saved, err := os.ReadFile(path); err != nil || !bytes.Equal(saved, golden) {
		t.Errorf("saved %d bytes, %v, want %d", len(saved), err, len(golden))
	}
}
