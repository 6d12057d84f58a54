package convnet

import (
	"math"

	"peermesh/gpu"
	"peermesh/trainer"
)

// A stage is a layer that learns, a convolution or a linear layer, and what follows it: a
// 2×2 max pool, ReLU, dropout.
type stage struct {
	name             string
	inputs, channels int // of a linear layer: its numbers in and out
	h, w, k          int // of an input plane, and the side of the kernel; 0: a linear layer
	pool, relu       bool
	drop             float64
	channel          bool // drop whole channels

	weight, bias *trainer.Param
	grads        *gpu.Memory // of both, side by side: what is ready together travels together

	// Room for a batch: the output, before the pool and after; their gradients; and what the
	// pool has chosen.
	z, dz, y, dy, which *gpu.Memory
}

// The stages of the ConvNet, as nn.NewConvNet has them.
func convNet() []*stage {
	return []*stage{
		{name: "conv1", inputs: 1, channels: 16, h: 28, w: 28, k: 3, relu: true},
		{name: "conv2", inputs: 16, channels: 32, h: 26, w: 26, k: 3, pool: true, relu: true, drop: 0.1},
		{name: "fc1", inputs: 4608, channels: 64, relu: true, drop: 0.25},
		{name: "fc2", inputs: 64, channels: 10},
	}
}

// The stages of the tutorial's network, as nn.NewTutorial has them.
func tutorial() []*stage {
	return []*stage{
		{name: "conv1", inputs: 1, channels: 10, h: 28, w: 28, k: 5, pool: true, relu: true},
		{name: "conv2", inputs: 10, channels: 20, h: 12, w: 12, k: 5, pool: true, relu: true, drop: 0.5, channel: true},
		{name: "fc1", inputs: 320, channels: 50, relu: true, drop: 0.5},
		{name: "fc2", inputs: 50, channels: 10},
	}
}

// convolved is the size of an output plane before pooling.
func (s *stage) convolved() int { return (s.h - s.k + 1) * (s.w - s.k + 1) }

// plane is that of an output plane.
func (s *stage) plane() int {
	switch {
	case s.k == 0:
		return 1
	case s.pool:
		return (s.h - s.k + 1) / 2 * ((s.w - s.k + 1) / 2)
	}
	return s.convolved()
}

// outs are the floats of a sample.
func (s *stage) outs() int { return s.channels * s.plane() }

// reserve makes room for a batch.
func (s *stage) reserve(all *stock, n int) {
	s.y, s.dy = all.memory(n*s.outs(), 4), all.memory(n*s.outs(), 4)
	s.z, s.dz, s.which = s.y, s.dy, nil
	if s.pool {
		before := n * s.channels * s.convolved()
		s.z, s.dz, s.which = all.memory(before, 4), all.memory(before, 4), all.memory(n*s.outs(), 1)
	}
}

// forward queues what makes the output for n samples of x, with dropout by the random numbers
// that begin at key, or without.
func (s *stage) forward(p *program, x *gpu.Memory, n int, dropping bool, key uint64) {
	weight, _ := at(s.weight.Value)
	bias, _ := at(s.bias.Value)
	if s.k == 0 {
		p.run("linear", n*s.outs(), []gpu.Argument{start(s.y), start(x), weight, bias}, s.inputs, s.channels)
	} else {
		p.run("convolve", n*s.channels*s.convolved(), []gpu.Argument{start(s.z), start(x), weight, bias},
			s.inputs, s.channels, s.h, s.w, s.k)
	}
	if s.pool {
		p.run("pool", n*s.outs(), []gpu.Argument{start(s.y), start(s.which), start(s.z)}, s.h-s.k+1, s.w-s.k+1)
	}
	if !s.relu {
		return
	}
	threshold, run := 0, 1
	if dropping {
		threshold = int(s.drop * (1 << 32))
	}
	if s.channel {
		run = s.plane()
	}
	p.run("activate", n*s.outs(), []gpu.Argument{start(s.y)},
		s.outs(), run, int(uint32(key)), int(key>>32), threshold, s.scale(dropping))
}

// scale is the bits of what dropout multiplies by.
func (s *stage) scale(dropping bool) int {
	if !dropping {
		return floatBits(1)
	}
	return floatBits(1 / (1 - s.drop))
}

func floatBits(v float64) int { return int(math.Float32bits(float32(v))) }

// learn queues what makes the gradients of the parameters of that of the output, dy, for n
// samples of x in so many shards. parts is room for a sum of each shard.
func (s *stage) learn(p *program, x, parts *gpu.Memory, n, shards int, dropping bool) {
	if s.relu {
		p.run("gate", n*s.outs(), []gpu.Argument{start(s.dy), start(s.y)}, s.scale(dropping))
	}
	weight, _ := at(s.weight.Grad)
	bias, _ := at(s.bias.Grad)
	part, dy := start(parts), start(s.dy)
	sums := s.channels * shards
	if s.k == 0 {
		p.run("linear_bias", sums, []gpu.Argument{part, dy}, n, shards, s.channels)
	} else {
		p.run("convolve_bias", sums, []gpu.Argument{part, dy}, n, shards, s.channels, s.plane())
	}
	p.run("fold", s.channels, []gpu.Argument{bias, part}, shards)
	if s.pool {
		p.run("unpool", n*s.outs(), []gpu.Argument{start(s.dz), dy, start(s.which)}, s.h-s.k+1, s.w-s.k+1)
	}
	weights := s.weight.Value.Len()
	if s.k == 0 {
		p.run("linear_weights", weights*shards, []gpu.Argument{part, dy, start(x)}, n, shards, s.inputs, s.channels)
	} else {
		p.run("convolve_weights", weights*shards, []gpu.Argument{part, start(s.dz), start(x)},
			n, shards, s.inputs, s.channels, s.h, s.w, s.k)
	}
	p.run("fold", weights, []gpu.Argument{weight, part}, shards)
}

// back queues what makes the gradient of the input, dx, of that of the output.
func (s *stage) back(p *program, dx *gpu.Memory, n int) {
	weight, _ := at(s.weight.Value)
	if s.k == 0 {
		p.run("linear_back", n*s.inputs, []gpu.Argument{start(dx), start(s.dy), weight}, s.inputs, s.channels)
		return
	}
	p.run("convolve_back", n*s.inputs*s.h*s.w, []gpu.Argument{start(dx), start(s.dz), weight}, s.inputs, s.channels, s.h, s.w, s.k)
}
