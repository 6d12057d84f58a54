package convnet

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/nn"
)

// TestOptimizers gives the optimisers of the device and of the host the same gradients, with
// settings of all kinds, and rates that change: parameters and states are the same.
func TestOptimizers(t *testing.T) {
	d := opened(t, 3)
	for name, c := range map[string]struct {
		device func(n *Net) (*Optimizer, error)
		host   func(p []*trainer.Param) (trainer.Optimizer, error)
	}{
		"sgd": {
			func(n *Net) (*Optimizer, error) { return n.SGD(trainer.SGDConfig{Maximize: true}) },
			func(p []*trainer.Param) (trainer.Optimizer, error) {
				return trainer.NewSGD(p, trainer.SGDConfig{Maximize: true})
			},
		},
		"nesterov": {
			func(n *Net) (*Optimizer, error) {
				return n.SGD(trainer.SGDConfig{Momentum: .8, Nesterov: true, WeightDecay: .1})
			},
			func(p []*trainer.Param) (trainer.Optimizer, error) {
				return trainer.NewSGD(p, trainer.SGDConfig{Momentum: .8, Nesterov: true, WeightDecay: .1})
			},
		},
		"adadelta": {
			func(n *Net) (*Optimizer, error) {
				return n.Adadelta(trainer.AdadeltaConfig{Rho: trainer.Zero, Eps: 1e-4, Maximize: true})
			},
			func(p []*trainer.Param) (trainer.Optimizer, error) {
				return trainer.NewAdadelta(p, trainer.AdadeltaConfig{Rho: trainer.Zero, Eps: 1e-4, Maximize: true})
			},
		},
	} {
		net := made(t, d, nn.Config{Seed: 4})
		host, err := nn.NewConvNet(nn.Config{Seed: 4})
		if err != nil {
			t.Fatal(err)
		}
		o, e1 := c.device(net)
		h, e2 := c.host(host.Params())
		if err := errors.Join(e1, e2); err != nil {
			t.Fatal(name, err)
		}
		closedAtEnd(t, o)
		rng := rand.New(rand.NewPCG(1, 1))
		for step := range 2 {
			for i, p := range host.Params() {
				g, _ := tensor.Data[float32](p.Grad)
				for k := range g {
					g[k] = float32(rng.NormFloat64())
				}
				if err := tensor.Copy(net.Params()[i].Grad, p.Grad); err != nil {
					t.Fatal(err)
				}
			}
			o.Rates()[0] /= float64(1 + step)
			h.Rates()[0] /= float64(1 + step)
			if err := errors.Join(o.Step(), h.Step()); err != nil {
				t.Fatal(name, err)
			}
		}
		for i, p := range net.Params() {
			alike(t, name+": "+p.Name, p.Value, host.Params()[i].Value)
		}
		sameState(t, o.State(), h.State())
		o.Rates()[0] = math.NaN()
		if err := o.Step(); err == nil || !strings.Contains(err.Error(), "learning rate of NaN") {
			t.Errorf("%s: a rate that is none: %v", name, err)
		}
	}
}

// TestSteps has a step that is taken again draw the same masks, and the next one others.
func TestSteps(t *testing.T) {
	net := made(t, opened(t, 0), nn.Config{Seed: 4})
	turned := 0
	net.OnBackward(func() { turned++ })
	b := drawn(1, 1)
	var losses []float64
	for _, step := range []int64{5, 5, 6} {
		net.SetStep(step)
		loss, err := net.ForwardBackward(t.Context(), b, nil)
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, loss)
	}
	if losses[0] != losses[1] || losses[1] == losses[2] || turned != 3 {
		t.Errorf("losses of steps 5, 5 and 6: %v; turned %d times", losses, turned)
	}
}
