package layers

import (
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/safetensors"
)

// torchTolerance is how far from PyTorch a float may be, relative to those above 1.
const torchTolerance = 1e-5

// A golden is what PyTorch made of a layer: see testdata/torch/layers.py.
type golden struct {
	Name      string
	X, DY     []float32
	Y, DX     []float32
	Evaluated []float32
	Params    [][]float32
	Grads     [][]float32
	Buffers   [][]float32
	Labels    []int32
	Targets   []float32
	Loss      float64
}

func goldens(t *testing.T) map[string]golden {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "torch", "layers.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := make(map[string]golden)
	for d := json.NewDecoder(f); ; {
		var g golden
		if err := d.Decode(&g); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[g.Name] = g
	}
}

func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d floats, PyTorch has %d", what, len(got), len(want))
		return
	}
	for i, v := range got {
		if d := math.Abs(float64(v) - float64(want[i])); !(d <= torchTolerance*math.Max(1, math.Abs(float64(want[i])))) {
			t.Errorf("%s[%d] = %v, PyTorch has %v", what, i, v, want[i])
			return
		}
	}
}

// Every layer gives PyTorch's outputs, gradients and buffers.
func TestLayersAgainstPyTorch(t *testing.T) {
	all := goldens(t)
	compared := 0
	for _, s := range specimens {
		g, ok := all[s.name]
		if !ok {
			continue
		}
		compared++
		t.Run(s.name, func(t *testing.T) {
			n := build(t, Config{Threads: 2}, s.in, s.make(), s.raw)
			if len(n.weights) != len(g.Params) {
				t.Fatalf("%d parameters, PyTorch has %d", len(n.weights), len(g.Params))
			}
			for i, w := range n.weights {
				copy(w.Value, g.Params[i])
			}
			y, dx := n.backward(t, g.X, g.DY)
			near(t, "y", y, g.Y)
			near(t, "dx", dx, g.DX)
			for i, w := range n.weights {
				near(t, "gradient of "+w.Param.Name, w.Grad, g.Grads[i])
			}
			for i, b := range n.buffers {
				near(t, b.Name, floats(b.Value), g.Buffers[i])
			}
			y, err := n.Forward(t.Context(), g.X)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "evaluated y", y, g.Evaluated)
		})
	}
	if compared < 18 {
		t.Errorf("compared %d layers", compared)
	}
}

// floats are a buffer's, whatever its type.
func floats(x tensor.Tensor) []float32 {
	if v, ok := tensor.Data[float32](x); ok {
		return v
	}
	var f []float32
	v, _ := tensor.Data[int64](x)
	for _, v := range v {
		f = append(f, float32(v))
	}
	return f
}

func TestLossesAgainstPyTorch(t *testing.T) {
	all := goldens(t)
	for name, l := range map[string]Loss{"cross entropy": &CrossEntropy{}, "mse": &MSE{}} {
		g := all[name]
		n, err := New(Config{}, Shape{5}, Flatten{}, l)
		if err != nil {
			t.Fatal(err)
		}
		n.pass = Pass{N: 6, ctx: t.Context(), net: n}
		dz := make([]float32, len(g.X))
		s, err := l.Score(&n.pass, Batch{Labels: g.Labels, Targets: g.Targets}, g.X, dz)
		if err != nil {
			t.Fatal(err)
		}
		near(t, name, []float32{float32(s.Mean())}, []float32{float32(g.Loss)})
		near(t, "gradient of "+name, dz, g.DX)
	}
}

// A model whose state_dict PyTorch has saved loads by its names, and makes the same
// of a batch; saved and loaded again it is the same to the bit.
func TestModelsFromPyTorch(t *testing.T) {
	for name, m := range map[string]struct {
		in    Shape
		layer Layer
	}{
		"resnet":      {Shape{1, 28, 28}, must(NewResNet(ResNetConfig{Width: 4}))},
		"transformer": {Shape{12}, must(NewTransformer(TransformerConfig{Vocabulary: 60, Width: 16, Heads: 2, Hidden: 32}))},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := New(Config{Threads: 2}, m.in, m.layer, &CrossEntropy{})
			if err != nil {
				t.Fatal(err)
			}
			f, err := safetensors.Open(filepath.Join("testdata", "torch", name+".safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			extra := loadGolden(t, n, f)
			y, err := n.Forward(t.Context(), floats(extra["x"]))
			if err != nil {
				t.Fatal(err)
			}
			near(t, "y", y, floats(extra["y"]))
			b := Batch{X: floats(extra["x"])}
			for _, v := range floats(extra["labels"]) {
				b.Labels = append(b.Labels, int32(v))
			}
			reloads(t, n)
			loss, err := n.ForwardBackward(t.Context(), b, nil)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "loss", []float32{float32(loss)}, floats(extra["loss"]))
			for _, p := range n.params {
				if want, ok := extra["grad."+p.Name]; ok {
					near(t, "gradient of "+p.Name, floats(p.Grad), floats(want))
					delete(extra, "grad."+p.Name)
				}
			}
			if len(extra) != 4 {
				t.Errorf("gradients of parameters that are not there: %v", extra)
			}
		})
	}
}

// loadGolden fills a network's parameters and buffers, which are all that is in the
// file but for what starts with "golden.", which it returns.
func loadGolden(t *testing.T, n *Net, f *safetensors.File) map[string]tensor.Tensor {
	t.Helper()
	state := append(n.Params()[:len(n.params):len(n.params)], n.Buffers()...)
	extra := make(map[string]tensor.Tensor)
	for _, i := range f.Tensors() {
		x, err := f.Read(i.Name)
		if err != nil {
			t.Fatal(err)
		}
		if key, ok := strings.CutPrefix(i.Name, "golden."); ok {
			extra[key] = x
			state = append(state, &trainer.Param{Name: i.Name, Value: x})
		}
	}
	if err := f.Load(state, safetensors.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	return extra
}

// reloads saves the network and loads it into another of the kind.
func reloads(t *testing.T, n *Net) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.safetensors")
	state := append(n.Params()[:len(n.params):len(n.params)], n.Buffers()...)
	if err := safetensors.Save(path, state, safetensors.Options{}); err != nil {
		t.Fatal(err)
	}
	want, err := trainer.Hash(state)
	if err != nil {
		t.Fatal(err)
	}
	n.scramble()
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Load(state, safetensors.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := trainer.Hash(state); err != nil || got != want {
		t.Errorf("loaded another model than was saved; %v", err)
	}
}
