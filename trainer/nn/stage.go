package nn

import "peermesh/trainer/nn/internal/draw"

// A shape is that of a sample between two layers: channels, height, width.
type shape struct{ c, h, w int }

func (s shape) len() int { return s.c * s.h * s.w }

// weights are a layer's parameters and their gradients, the elements of the
// tensors that Net.Params lends.
type weights struct {
	shape       []int // of the weight; the bias has one number for each shape[0]
	val, bias   []float32
	dval, dbias []float32
}

func (w *weights) params() *weights { return w }

// A layer is what learns in a stage. Samples lie one after another in x, y and
// their gradients, size floats each. Methods that take a worker or a part run
// at once for different ones.
type layer interface {
	size() (ins, outs int)
	params() *weights

	// prepare readies a pass over n samples in so many shards.
	prepare(n, shards int, train bool)

	// forward sets samples [lo, hi) of y.
	forward(worker int, x, y []float32, lo, hi int)

	// backward sets samples [lo, hi) of dx, unless dx is nil, and takes their part
	// of the parameters' gradients to the shard's own sums.
	backward(worker, shard int, x, dy, dx []float32, lo, hi int)

	// finish, after all shards' backward, sets one of parts parts of the gradients.
	finish(worker, part int, x, dy []float32)
}

// A stage is a layer that learns and the element-wise ones that follow it, which
// work in place on its output.
type stage struct {
	layer
	relu    bool
	drop    float64 // probability; it needs relu, as backward knows a dropped element by its zero
	channel bool    // drop whole channels
	plane   int     // floats of a channel

	x, y, dy []float32 // a batch's input, output and gradient of the output
}

func (s *stage) prepare(x []float32, n, shards int, train bool) []float32 {
	s.x = x
	_, outs := s.size()
	s.y = grow(s.y, n*outs)
	if train {
		s.dy = grow(s.dy, n*outs)
	}
	s.layer.prepare(n, shards, train)
	return s.y
}

// forward computes samples [lo, hi), with dropout or without; sample i draws its
// mask from masks.At(i).
func (s *stage) forward(worker, lo, hi int, dropping bool, masks draw.Stream) {
	s.layer.forward(worker, s.x, s.y, lo, hi)
	if !s.relu {
		return
	}
	_, outs := s.size()
	relu(s.y[lo*outs : hi*outs])
	if !dropping || s.drop == 0 {
		return
	}
	run := 1
	if s.channel {
		run = s.plane
	}
	for i := lo; i < hi; i++ {
		dropout(s.y[i*outs:][:outs], run, s.drop, masks.At(uint64(i)))
	}
}

// backward turns the gradient of the stage's output into that of its input, dx,
// unless nil.
func (s *stage) backward(worker, shard, lo, hi int, dx []float32, dropping bool) {
	if s.relu {
		_, outs := s.size()
		scale := float32(1)
		if dropping {
			scale = float32(1 / (1 - s.drop))
		}
		gate(s.dy[lo*outs:hi*outs], s.y[lo*outs:], scale)
	}
	s.layer.backward(worker, shard, s.x, s.dy, dx, lo, hi)
}

// grow is s with n elements, undefined; it allocates only to get larger.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		s = make([]T, n)
	}
	return s[:n]
}
