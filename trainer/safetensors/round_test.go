package safetensors_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/safetensors"
)

// random is a model of some tensors of any type and shape.
func random(r *rand.Rand) []*trainer.Param {
	var params []*trainer.Param
	for i := range r.IntN(6) {
		shape := make([]int, r.IntN(4))
		for d := range shape {
			shape[d] = r.IntN(4)
		}
		x := tensor.New(tensor.DType(1+r.IntN(int(tensor.Bool))), shape...)
		p, _ := x.View(0, x.Bytes())
		for k := range p {
			if p[k] = byte(r.Uint32()); x.DType() == tensor.Bool {
				p[k] &= 1
			}
		}
		params = append(params, &trainer.Param{Name: fmt.Sprintf("layer.%d", i), Value: x})
	}
	return params
}

// Whatever is written is loaded, to the last bit; and each tensor lies at a multiple
// of its element's size, so that who maps the file can use it in place.
func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		params := random(r)
		f := written(t, safetensors.Options{}, params...)
		loaded := make([]*trainer.Param, len(params))
		for i, p := range params {
			loaded[i] = &trainer.Param{Name: p.Name, Value: tensor.New(p.Value.DType(), p.Value.Shape()...)}
		}
		if err := f.Load(loaded, safetensors.LoadOptions{}); err != nil {
			t.Fatal(err)
		}
		equal(t, loaded, params)
		var at int64
		for _, i := range f.Tensors() {
			if at%int64(i.DType.Size()) != 0 {
				t.Errorf("%v lies at byte %d", i, at)
			}
			at += i.Bytes()
		}
	}
}

// However a file is cut, that is found out when it is opened.
func TestCutFiles(t *testing.T) {
	whole, err := os.ReadFile("testdata/golden.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if _, err := safetensors.New(bytes.NewReader(whole[:n]), int64(n)); !errors.Is(err, safetensors.ErrFormat) {
			t.Errorf("cut to %d of %d bytes: %v", n, len(whole), err)
		}
	}
	longer := append(bytes.Clone(whole), 0)
	if _, err := safetensors.New(bytes.NewReader(longer), int64(len(longer))); !errors.Is(err, safetensors.ErrFormat) {
		t.Errorf("a byte too long: %v", err)
	}
}

// A file that is saved over another while that is open leaves the open one as it
// was: its reader has the old model, whole.
func TestSaveOverAnOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	save := func(x float64) {
		if err := safetensors.Save(path, []*trainer.Param{param("x", x)}, safetensors.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	save(1)
	old, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	save(2)
	x, err := old.Read("x")
	if err != nil || data[float64](t, x)[0] != 1 {
		t.Errorf("%v, %v", x, err)
	}
	renewed, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer renewed.Close()
	if x, err = renewed.Read("x"); err != nil || data[float64](t, x)[0] != 2 {
		t.Errorf("%v, %v", x, err)
	}
}
