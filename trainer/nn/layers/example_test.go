package layers_test

import (
	"context"
	"fmt"
	"log"

	"peermesh/trainer"
	"peermesh/trainer/nn/layers"
)

// A network from layers to a step. With more than one rank, ready and a DDP stand
// between backward and Step.
func Example() {
	ctx := context.Background()
	net, err := layers.New(layers.Config{Seed: 1}, layers.Shape{2}, layers.Sequential{
		&layers.Linear{Out: 8},
		&layers.ReLU{},
		&layers.Linear{Out: 2},
	}, &layers.CrossEntropy{})
	if err != nil {
		log.Fatal(err)
	}
	sgd, err := trainer.NewSGD(net.Params(), trainer.SGDConfig{LR: 0.5, Momentum: 0.9})
	if err != nil {
		log.Fatal(err)
	}
	xor := layers.Batch{X: []float32{0, 0, 0, 1, 1, 0, 1, 1}, Labels: []int32{0, 1, 1, 0}}
	for range 100 {
		if _, err := net.ForwardBackward(ctx, xor, nil); err != nil {
			log.Fatal(err)
		}
		if err := sgd.Step(); err != nil {
			log.Fatal(err)
		}
	}
	score, err := net.Evaluate(ctx, xor)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(score.Right, "of", score.Count, "right")
	// Output: 4 of 4 right
}

// Parameters have the names of PyTorch's state_dict.
func ExampleNewResNet() {
	resnet, err := layers.NewResNet(layers.ResNetConfig{Width: 4, Stages: 2})
	if err != nil {
		log.Fatal(err)
	}
	net, err := layers.New(layers.Config{}, layers.Shape{1, 28, 28}, resnet, &layers.CrossEntropy{})
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range net.Params()[13:] {
		fmt.Println(p.Name, p.Value.Shape())
	}
	// Output:
	// layer2.0.bn2.weight [8]
	// layer2.0.bn2.bias [8]
	// layer2.0.downsample.0.weight [8 4 1 1]
	// layer2.0.downsample.1.weight [8]
	// layer2.0.downsample.1.bias [8]
	// fc.weight [10 8]
	// fc.bias [10]
}

// A layer of one's own: it scales by a parameter.
type Scale struct {
	w    *layers.Weight
	x, y []float32
}

func (l *Scale) Init(b *layers.Builder, in layers.Shape) (layers.Shape, error) {
	l.w = b.Weight("scale", layers.Constant(1), 1)
	return in, nil
}

func (l *Scale) Forward(_ *layers.Pass, x []float32) ([]float32, error) {
	l.x, l.y = x, l.y[:0]
	for _, v := range x {
		l.y = append(l.y, v*l.w.Value[0])
	}
	return l.y, nil
}

func (l *Scale) Backward(p *layers.Pass, dy []float32) ([]float32, error) {
	l.w.Grad[0] = 0
	for i, v := range dy {
		l.w.Grad[0] += v * l.x[i]
		dy[i] = v * l.w.Value[0]
	}
	p.Ready(l.w)
	return dy, nil
}

func ExampleLayer() {
	net, err := layers.New(layers.Config{}, layers.Shape{1}, layers.Sequential{layers.Named{Name: "mine", Layer: &Scale{}}}, &layers.MSE{})
	if err != nil {
		log.Fatal(err)
	}
	loss, err := net.ForwardBackward(context.Background(), layers.Batch{X: []float32{3}, Targets: []float32{1}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(net.Params()[0].Name, loss)
	// Output: mine.scale 4
}
