package npy_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"peermesh/ops/tensor"
	"peermesh/trainer/data/npy"
)

// text is the type, shape and elements of an array.
func text(t *testing.T, a *npy.Array) string {
	t.Helper()
	x, err := a.Read()
	if err != nil {
		t.Fatal(err)
	}
	if a.DType() != x.DType() || fmt.Sprint(a.Shape()) != fmt.Sprint(x.Shape()) {
		t.Errorf("read %v of %v%v", x, a.DType(), a.Shape())
	}
	return fmt.Sprintf("%v %v", x, values(x))
}

func values(x tensor.Tensor) any {
	switch x.DType() {
	case tensor.Float16:
		v, _ := tensor.Data[tensor.F16](x)
		return v
	case tensor.Float32:
		v, _ := tensor.Data[float32](x)
		return v
	case tensor.Float64:
		v, _ := tensor.Data[float64](x)
		return v
	case tensor.Int8:
		v, _ := tensor.Data[int8](x)
		return v
	case tensor.Int16:
		v, _ := tensor.Data[int16](x)
		return v
	case tensor.Int32:
		v, _ := tensor.Data[int32](x)
		return v
	case tensor.Int64:
		v, _ := tensor.Data[int64](x)
		return v
	case tensor.Uint8:
		v, _ := tensor.Data[uint8](x)
		return v
	case tensor.Uint16:
		v, _ := tensor.Data[uint16](x)
		return v
	case tensor.Uint32:
		v, _ := tensor.Data[uint32](x)
		return v
	case tensor.Uint64:
		v, _ := tensor.Data[uint64](x)
		return v
	}
	v, _ := tensor.Data[bool](x)
	return v
}

// want is what testdata/golden.py has written, by name.
func want() map[string]string {
	m := map[string]string{
		"bool":        "bool[2 3] [false true false true false true]",
		"fortran":     "int16[2 3 4] [-2 -1 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21]",
		"big_fortran": "float64[2 3] [-2 -1.75 -1.5 -1.25 -1 -0.75]",
		"scalar":      "float32[] [1.5]",
		"vector":      "float32[5] [-2 -1.75 -1.5 -1.25 -1]",
		"empty":       "uint8[0 3] []",
	}
	for _, size := range []int{8, 16, 32, 64} {
		for _, big := range []string{"", "big_"} {
			if size == 8 && big != "" {
				continue
			}
			m[fmt.Sprintf("%si%d", big, size/8)] = fmt.Sprintf("int%d[2 3] [-2 -1 0 1 2 3]", size)
			m[fmt.Sprintf("%su%d", big, size/8)] = fmt.Sprintf("uint%d[2 3] [0 1 2 3 4 5]", size)
			if size > 8 {
				m[fmt.Sprintf("%sf%d", big, size/8)] = fmt.Sprintf("float%d[2 3] [-2 -1.75 -1.5 -1.25 -1 -0.75]", size)
			}
		}
	}
	return m
}

func TestReadsWhatNumPyWrote(t *testing.T) {
	for _, path := range []string{"testdata/stored.npz", "testdata/packed.npz"} {
		z, err := npy.OpenZip(path)
		if err != nil {
			t.Fatal(err)
		}
		expected := want()
		if names := z.Names(); len(names) != len(expected) {
			t.Errorf("%s has %v", path, names)
		}
		for name, w := range expected {
			a, err := z.Array(name)
			if err != nil {
				t.Error(err)
				continue
			}
			if got := text(t, a); got != w || a.Fortran() != strings.HasSuffix(name, "fortran") {
				t.Errorf("%s: %s: %s, want %s", path, name, got, w)
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestReadsEveryVersion(t *testing.T) {
	for v := 1; v <= 3; v++ {
		a, err := npy.Open(fmt.Sprintf("testdata/v%d.npy", v))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := text(t, a), "float32[2 3] [-2 -1.75 -1.5 -1.25 -1 -0.75]"; got != want {
			t.Errorf("version %d: %s, want %s", v, got, want)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestRefusesWhatIsNoTensor(t *testing.T) {
	z, err := npy.OpenZip("testdata/refused.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if len(z.Names()) != 7 {
		t.Errorf("%v", z.Names())
	}
	for _, name := range z.Names() {
		if _, err := z.Array(name); !errors.Is(err, npy.ErrFormat) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An array of each type, written again, is the file that NumPy wrote.
func TestWritesWhatNumPyWrote(t *testing.T) {
	z, err := npy.OpenZip("testdata/stored.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	members := memberBytes(t, "testdata/stored.npz")
	for name := range want() {
		if strings.Contains(name, "big") || name == "fortran" {
			continue
		}
		a, err := z.Array(name)
		if err != nil {
			t.Fatal(err)
		}
		x, err := a.Read()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := npy.Write(&b, x); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Bytes(), members[name]) {
			t.Errorf("%s: wrote %q, want %q", name, b.Bytes(), members[name])
		}
	}
	v1, err := os.ReadFile("testdata/v1.npy")
	if err != nil {
		t.Fatal(err)
	}
	x, err := tensor.Of([]float32{-2, -1.75, -1.5, -1.25, -1, -0.75}).Reshape(2, 3)
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/v1.npy"
	if err := npy.Save(path, x); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, v1) {
		t.Errorf("saved %q, %v", got, err)
	}
}
