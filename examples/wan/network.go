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

// A network is one that the tables are of.
type network struct {
	layers []layer                                           // in forward order
	make   func(nn.Config) (*nn.Net, error)                  // nil: only -overlap knows it
	inner  func([]*trainer.Param) (trainer.Optimizer, error) // of all methods alike
}

// networks are the ConvNet; one of fully connected layers, with six times the parameters for
// fewer multiplications; and that of PyTorch's MNIST example.
var networks = map[string]network{
	"convnet": {make: nn.NewConvNet, inner: adadelta(0.5), layers: []layer{
		{"conv1", 16*9 + 16, 0.097},
		{"conv2", 32*16*9 + 32, 2.654},
		{"fc1", 4608*64 + 64, 0.295},
		{"fc2", 64*10 + 10, 0.001},
	}},
	"mlp": {make: func(c nn.Config) (*nn.Net, error) { return nn.NewMLP(c) }, inner: adadelta(1), layers: []layer{
		{"fc1", 784*1024 + 1024, 0.803},
		{"fc2", 1024*1024 + 1024, 1.049},
		{"fc3", 1024*10 + 10, 0.010},
	}},
	"example": {layers: []layer{
		{"conv1", 32*9 + 32, 0.195},
		{"conv2", 64*32*9 + 64, 10.617},
		{"fc1", 9216*128 + 128, 1.180},
		{"fc2", 128*10 + 10, 0.001},
	}},
}

// adadelta makes optimisers of a rate.
func adadelta(rate float64) func([]*trainer.Param) (trainer.Optimizer, error) {
	return func(params []*trainer.Param) (trainer.Optimizer, error) {
		return trainer.NewAdadelta(params, trainer.AdadeltaConfig{LR: rate})
	}
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
