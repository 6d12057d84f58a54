package layers

import (
	"context"

	"peermesh/ops"
)

// A Shape is that of one sample, the outermost dimension first: {channels, height,
// width} of an image, {positions, features} of a sequence, {features} of a vector.
type Shape []int

// Len is the number of floats of a sample.
func (s Shape) Len() int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}

// last is the innermost dimension: what a Linear or a LayerNorm works along.
func (s Shape) last() int {
	if len(s) == 0 {
		return 1
	}
	return s[len(s)-1]
}

// with is s with another innermost dimension.
func (s Shape) with(last int) Shape {
	t := append(Shape(nil), s...)
	t[len(t)-1] = last
	return t
}

// A Layer is a part of a network, forward and backward. It is made by its literal,
// as in &Linear{Out: 10}, belongs to one place of one network, and keeps what
// backward needs of forward, for one batch at a time.
//
// The samples of a batch lie one after another in x, y and their gradients.
type Layer interface {
	// Init is called once, by New: it settles the shape of a sample of the output
	// and takes what parameters and buffers the layer has from b.
	Init(b *Builder, in Shape) (out Shape, err error)

	// Forward computes a batch. It leaves x as it is, but may return it, and keeps
	// it: x stays as it is until Backward.
	Forward(p *Pass, x []float32) (y []float32, err error)

	// Backward turns the gradient of the loss by the last Forward's y into that by
	// its x, and sets the gradients of the layer's parameters, each of which it then
	// gives to p.Ready. It may overwrite dy, and return it. The result is nil where
	// Builder.Raw was true.
	Backward(p *Pass, dy []float32) (dx []float32, err error)
}

// A Pass is one batch on its way through the layers.
type Pass struct {
	N     int  // samples; none where other ranks of a Net.Synchronize have some
	Train bool // as opposed to evaluation: drop out, take statistics of the batch

	ctx   context.Context
	net   *Net
	ready func(i int)

	weight float64 // see Net.Weigh
}

// Context bounds what a layer waits for.
func (p *Pass) Context() context.Context { return p.ctx }

// Group is that of Net.Synchronize: nil when every rank normalises for itself.
func (p *Pass) Group() *ops.Group { return p.net.group }

// Each runs job for parts 0 … parts-1 on the network's threads, and returns when
// all are done. A result must not depend on which worker, of Builder.Threads,
// takes which part: parts write floats of their own, and scratch is a worker's. A
// job that is made once, and not for every call, allocates nothing.
func (p *Pass) Each(parts int, job func(worker, part int)) {
	if parts > 0 { // a batch may be empty
		p.net.crew.Run(parts, job)
	}
}

// Ready says that a parameter's gradient is final. It is for the goroutine that
// called Backward.
func (p *Pass) Ready(w *Weight) {
	if p.ready != nil && !w.frozen {
		p.ready(w.index)
	}
}
