package layers

import (
	"fmt"
	"strconv"
)

// A ResNetConfig describes a residual network for small images. The zero value is
// ResNet-8: three stages of one block.
type ResNetConfig struct {
	Blocks  int // of a stage; zero: 1. The network has 6·Blocks+2 layers that learn
	Width   int // channels of the first stage, doubled in each later one; zero: 16
	Stages  int // zero: 3. Each but the first halves the image's sides
	Classes int // zero: 10
}

// MaxBlocks bounds the blocks and stages of a network.
const MaxBlocks = 256

// NewResNet is the residual network that He et al. have for CIFAR (2015, section
// 4.2), with projections where the shape changes: a convolution, stages of blocks,
// the mean over pixels, a linear layer. Its parameters have the names of
// torchvision's ResNets: "conv1.weight", "layer2.0.downsample.0.weight", "fc.bias".
func NewResNet(c ResNetConfig) (Layer, error) {
	for _, s := range []struct {
		v         *int
		byDefault int
		most      int
	}{{&c.Blocks, 1, MaxBlocks}, {&c.Width, 16, 1 << 12}, {&c.Stages, 3, 8}, {&c.Classes, 10, MaxWidth}} {
		if *s.v == 0 {
			*s.v = s.byDefault
		}
		if *s.v < 1 || *s.v > s.most {
			return nil, fmt.Errorf("layers: ResNet: %+v: want at most %d for %d", c, s.most, *s.v)
		}
	}
	net := Sequential{
		Named{"conv1", &Conv2d{Out: c.Width, Kernel: 3, Padding: 1, NoBias: true}},
		Named{"bn1", &BatchNorm2d{}},
		&ReLU{},
	}
	in := c.Width
	for stage := range c.Stages {
		var blocks Sequential
		for i := range c.Blocks {
			out, stride := c.Width<<stage, 1
			if stage > 0 && i == 0 {
				stride = 2
			}
			blocks = append(blocks, basicBlock(in, out, stride))
			in = out
		}
		net = append(net, Named{"layer" + strconv.Itoa(stage+1), blocks})
	}
	return append(net, &GlobalAvgPool2d{}, Named{"fc", &Linear{Out: c.Classes}}), nil
}

// basicBlock is two convolutions beside a shortcut: torchvision's BasicBlock.
func basicBlock(in, out, stride int) Layer {
	r := &Residual{Body: Sequential{
		Named{"conv1", &Conv2d{Out: out, Kernel: 3, Stride: stride, Padding: 1, NoBias: true}},
		Named{"bn1", &BatchNorm2d{}},
		&ReLU{},
		Named{"conv2", &Conv2d{Out: out, Kernel: 3, Padding: 1, NoBias: true}},
		Named{"bn2", &BatchNorm2d{}},
	}}
	if in != out || stride != 1 {
		r.Shortcut = Named{"downsample", Sequential{
			&Conv2d{Out: out, Kernel: 1, Stride: stride, NoBias: true},
			&BatchNorm2d{},
		}}
	}
	return Sequential{Named{"", r}, &ReLU{}}
}
