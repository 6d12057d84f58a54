package nn

import (
	"math"

	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/nn/internal/draw"
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

// params allocates the parameters and draws their values as PyTorch's layers do:
// weight and bias uniform within ±1/√(inputs of an output), which is
// kaiming_uniform with a = √5. Each has its own stream, so one layer's size does
// not move the next one's values.
func (b *builder) params(s draw.Stream) []*trainer.Param {
	var params []*trainer.Param
	add := func(name string, bound float32, shape ...int) (value, grad []float32) {
		p := &trainer.Param{
			Name: name, Value: tensor.New(tensor.Float32, shape...), Grad: tensor.New(tensor.Float32, shape...),
		}
		value, _ = tensor.Data[float32](p.Value)
		grad, _ = tensor.Data[float32](p.Grad)
		random := s.At(uint64(len(params)))
		for i := range value {
			value[i] = random.Uniform(bound)
		}
		params = append(params, p)
		return value, grad
	}
	for i, st := range b.stages {
		w, inputs := st.params(), 1
		for _, d := range w.shape[1:] {
			inputs *= d
		}
		bound := float32(1 / math.Sqrt(float64(inputs)))
		w.val, w.dval = add(b.names[i]+".weight", bound, w.shape...)
		w.bias, w.dbias = add(b.names[i]+".bias", bound, w.shape[0])
	}
	return params
}
