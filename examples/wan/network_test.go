package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"peermesh/trainer"
	"peermesh/trainer/mnist"
	"peermesh/trainer/nn"
)

func TestNetworkNames(t *testing.T) {
	for _, c := range []struct {
		name           string
		train, overlap string // whose layers; empty: none
		want           string // of the error
	}{
		{"", "convnet", "example", ""},
		{"convnet", "convnet", "convnet", ""},
		{"mlp", "mlp", "mlp", ""},
		{"example", "", "example", "-overlap"},
		{"resnet", "", "", "convnet, example, mlp"},
	} {
		check := func(of string, n network, err error) {
			t.Helper()
			switch {
			case of != "" && err != nil:
				t.Errorf("%q: %v", c.name, err)
			case of != "" && &n.layers[0] != &networks[of].layers[0]:
				t.Errorf("%q is not %s", c.name, of)
			case of == "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%q: error %v, want %q", c.name, err, c.want)
			}
		}
		n, err := trained(c.name)
		check(c.train, n, err)
		n, err = named(c.name, "example")
		check(c.overlap, n, err)
	}
}

// What a network has is refused before there is data, or a world.
func TestContestOfNoNetwork(t *testing.T) {
	for _, name := range []string{"example", "resnet"} {
		err := contest(t.Context(), []string{"ddp"}, t.TempDir(), options{net: name, env: true})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The layers that -overlap goes by are those that are trained.
func TestLayersAreTheNetworks(t *testing.T) {
	for name, n := range networks {
		if n.make == nil {
			continue
		}
		net, err := n.make(nn.Config{})
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]int)
		for _, p := range net.Params() {
			got[p.Name[:strings.Index(p.Name, ".")]] += p.Value.Len()
		}
		if len(got) != len(n.layers) {
			t.Errorf("%s has %d layers, want %d", name, len(n.layers), len(got))
		}
		for _, l := range n.layers {
			if got[l.name] != l.elements {
				t.Errorf("%s: %s has %d elements, want %d", name, l.name, l.elements, got[l.name])
			}
		}
		if _, err := n.inner([]*trainer.Param{net.Params()[0]}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The mlp learns too, by a DDP of floats and one of bytes, which are a quarter.
func TestCompeteOfMLP(t *testing.T) {
	data := &mnist.Data{Train: bars(48), Test: bars(20)}
	o := options{net: "mlp", ranks: 2, epochs: 1, batch: 8, threads: 1, price: 200, latency: time.Millisecond}
	var sent []int64
	for _, text := range []string{"ddp", "lazy+int8"} {
		c, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		out, err := compete(t.Context(), here(o), 1, data, c, o)
		if err != nil {
			t.Fatal(err)
		}
		if out.steps != 6 || out.accuracy < 0.5 {
			t.Errorf("%s: %+v", text, out)
		}
		sent = append(sent, out.sent)
	}
	if less := float64(sent[0]) / float64(sent[1]); less < 3.9 || less > 4 {
		t.Errorf("%.3f times fewer bytes", less)
	}
}

// The mlp's rate falls to nothing over the run, of any length; the ConvNet's stays.
func TestRateOverARun(t *testing.T) {
	for name, want := range map[string][]float64{
		"mlp":     {0.1, 0.075, 0.025, 0}, // halves of a wave over 3 steps
		"convnet": {0.5, 0.5, 0.5, 0.5},
	} {
		net, err := networks[name].make(nn.Config{})
		if err != nil {
			t.Fatal(err)
		}
		o, err := networks[name].optimizer(net.Params(), 3)
		if err != nil {
			t.Fatal(err)
		}
		for step, rate := range want {
			if got := o.Rates()[0]; math.Abs(got-rate) > 1e-12 {
				t.Errorf("%s, step %d: a rate of %v, want %v", name, step, got, rate)
			}
			if err := o.Step(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestTotal(t *testing.T) {
	for _, c := range []struct{ epochs, steps, want int }{{1, 0, 3}, {2, 0, 6}, {2, 4, 4}, {1, 9, 3}} {
		train := &mnist.Set{Labels: make([]uint8, 15)}
		got := options{ranks: 2, batch: 4, epochs: c.epochs, steps: c.steps}.total(train)
		if got != c.want {
			t.Errorf("%+v: %d steps", c, got)
		}
	}
}
