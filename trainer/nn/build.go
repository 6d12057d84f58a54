package nn

import (
	"math"

	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/nn/internal/kern"
)

// A builder strings stages together; the shape between them follows.
type builder struct {
	engine  kern.Engine
	threads int
	out     shape // of the last stage so far, at first the samples'
	stages  []*stage
	names   []string
}

// options are what follows a stage's layer, in this order.
type options struct {
	pool, relu bool
	drop       float64
	channel    bool
}

func (b *builder) conv(name string, channels, k int, o options) {
	l := newConv(b.engine, b.threads, b.out, channels, k, o.pool)
	b.add(name, l, l.out(), o)
}

func (b *builder) linear(name string, outs int, o options) {
	b.add(name, newLinear(b.engine, b.threads, b.out.len(), outs), shape{outs, 1, 1}, o)
}

func (b *builder) add(name string, l layer, out shape, o options) {
	b.names = append(b.names, name)
	b.stages = append(b.stages, &stage{
		layer: l, relu: o.relu, drop: o.drop, channel: o.channel, plane: out.h * out.w,
	})
	b.out = out
}

// align is what parameters start at a multiple of, in floats: a cache line.
const align = 16

// params allocates all parameters in one arena and their gradients in another,
// so that a reader may take neighbours for one tensor, and draws the values as
// PyTorch's layers do: weight and bias uniform within ±1/√(inputs of an output),
// which is kaiming_uniform with a = √5. Each parameter has its own stream.
func (b *builder) params(s stream) []*trainer.Param {
	size := 0
	for _, st := range b.stages {
		w := st.params()
		size += round(product(w.shape)) + round(w.shape[0])
	}
	val, grad := aligned(size), aligned(size)
	var params []*trainer.Param
	cut := func(name string, bound float32, shape ...int) (v, g []float32) {
		n := product(shape)
		v, g = val[:n:n], grad[:n:n]
		val, grad = val[round(n):], grad[round(n):]
		random := s.at(uint64(len(params)))
		for i := range v {
			v[i] = random.uniform(bound)
		}
		params = append(params, &trainer.Param{Name: name, Value: shaped(v, shape), Grad: shaped(g, shape)})
		return v, g
	}
	for i, st := range b.stages {
		w := st.params()
		bound := float32(1 / math.Sqrt(float64(product(w.shape[1:]))))
		w.val, w.dval = cut(b.names[i]+".weight", bound, w.shape...)
		w.bias, w.dbias = cut(b.names[i]+".bias", bound, w.shape[0])
	}
	return params
}

// aligned is n zeros that start at a cache line.
func aligned(n int) []float32 {
	x, _ := tensor.Data[float32](tensor.New(tensor.Float32, n))
	return x
}

func shaped(x []float32, shape []int) tensor.Tensor {
	t, err := tensor.Of(x).Reshape(shape...)
	if err != nil {
		panic(err) // x was cut to this shape
	}
	return t
}

func round(n int) int { return (n + align - 1) / align * align }

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
