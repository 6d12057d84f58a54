package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"peermesh/trainer"
	"peermesh/trainer/nn"
)

// A layer is what one layer of a network has of parameters, and takes of a sample's
// multiplications, in millions.
type layer struct {
	name     string
	elements int
	work     float64
}

// A network is one that the tables are of, and how it is trained, by all methods alike.
type network struct {
	layers []layer                                           // in forward order
	make   func(nn.Config) (*nn.Net, error)                  // nil: only -overlap knows it
	inner  func([]*trainer.Param) (trainer.Optimizer, error) // at the learning rate's base
	curve  func(steps int) trainer.Curve                     // of the rate over a run; nil: constant
}

// networks are the ConvNet; one of fully connected layers, with ten times the parameters for
// as many multiplications; and that of PyTorch's MNIST example.
var networks = map[string]network{
	"convnet": {make: nn.NewConvNet, inner: adadelta, layers: []layer{
		{"conv1", 16*9 + 16, 0.097},
		{"conv2", 32*16*9 + 32, 2.654},
		{"fc1", 4608*64 + 64, 0.295},
		{"fc2", 64*10 + 10, 0.001},
	}},
	"mlp": {make: mlp, inner: nesterov, curve: cosine, layers: []layer{
		{"fc1", 784*1024 + 1024, 0.803},
		{"fc2", 1024*1024 + 1024, 1.049},
		{"fc3", 1024*1024 + 1024, 1.049},
		{"fc4", 1024*10 + 10, 0.010},
	}},
	"example": {layers: []layer{
		{"conv1", 32*9 + 32, 0.195},
		{"conv2", 64*32*9 + 64, 10.617},
		{"fc1", 9216*128 + 128, 1.180},
		{"fc2", 128*10 + 10, 0.001},
	}},
}

func mlp(c nn.Config) (*nn.Net, error) { return nn.NewMLP(c, 1024, 1024, 1024) }

func adadelta(params []*trainer.Param) (trainer.Optimizer, error) {
	return trainer.NewAdadelta(params, trainer.AdadeltaConfig{LR: 0.5})
}

func nesterov(params []*trainer.Param) (trainer.Optimizer, error) {
	return trainer.NewSGD(params, trainer.SGDConfig{LR: 0.1, Momentum: 0.9, Nesterov: true})
}

func cosine(steps int) trainer.Curve { return trainer.CosineAnnealing{Steps: steps} }

// A paced optimiser has its rate follow a curve, step by step.
type paced struct {
	trainer.Optimizer
	schedule *trainer.Schedule
}

func (p paced) Step() error {
	err := p.Optimizer.Step()
	p.schedule.Step()
	return err
}

// optimizer is that of a run of so many steps.
func (n network) optimizer(params []*trainer.Param, steps int) (trainer.Optimizer, error) {
	o, err := n.inner(params)
	if err != nil || n.curve == nil {
		return o, err
	}
	schedule, err := trainer.NewSchedule(o, n.curve(steps))
	return paced{o, schedule}, err
}

// named is the network of a name, or of another where that is empty.
func named(name, other string) (network, error) {
	if name == "" {
		name = other
	}
	n, known := networks[name]
	if !known {
		return n, fmt.Errorf("no network %q: want one of %s", name, strings.Join(slices.Sorted(maps.Keys(networks)), ", "))
	}
	return n, nil
}

// trained is that of a network which can be trained, the ConvNet where there is no name.
func trained(name string) (network, error) {
	n, err := named(name, "convnet")
	if err == nil && n.make == nil {
		err = fmt.Errorf("network %q is for -overlap: convnet and mlp can be trained", name)
	}
	return n, err
}
