package layers

import (
	"fmt"
	"math/rand/v2"
	"reflect"

	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/nn/internal/kern"
)

// MaxParam bounds the elements of one parameter.
const MaxParam = 1 << 28

// A Builder gives the layers of a network what they ask for in Init. The first
// error stays, and is New's.
type Builder struct {
	net    *Net
	engine kern.Engine
	prefix string // of names, "layer1.0."
	raw    bool
	places uint64 // layers so far that draw random numbers
	made   map[Layer]bool
	names  map[string]bool
	err    error
}

// Threads is the number of workers, for scratch memory that each has of its own.
func (b *Builder) Threads() int { return b.net.config.Threads }

// Raw says that the layer's input is the batch itself, whose gradient nobody wants.
func (b *Builder) Raw() bool { return b.raw }

// Child has Init of a layer within this one, and below its name; an empty name
// adds nothing to those of the child's parameters.
func (b *Builder) Child(name string, l Layer, in Shape) (Shape, error) {
	if reflect.TypeOf(l).Kind() == reflect.Pointer { // others have no memory of their own
		if b.made[l] {
			return nil, fmt.Errorf("layers: %s%s is in two places: make a layer for each", b.prefix, name)
		}
		b.made[l] = true
	}
	outer := b.prefix
	if name != "" {
		b.prefix += name + "."
	}
	defer func() { b.prefix = outer }()
	return l.Init(b, in)
}

// A Weight is a parameter as its layer sees it.
type Weight struct {
	Param *trainer.Param
	Value []float32 // its elements
	Grad  []float32 // the place of its gradient in this step

	index  int
	frozen bool      // nobody wants its gradient
	own    []float32 // the gradient's first place
}

// Weight is a new parameter of the layer. Each has random numbers of its own, so
// one layer's size does not move the next one's values.
func (b *Builder) Weight(name string, fill Init, shape ...int) *Weight {
	w := &Weight{index: len(b.net.weights)}
	n := 1
	for _, d := range shape {
		if d < 1 || n > MaxParam/d {
			b.fail(fmt.Errorf("layers: %s%s: a parameter of shape %v", b.prefix, name, shape))
			shape, n = []int{1}, 1
			break
		}
		n *= d
	}
	w.Param = &trainer.Param{
		Name: b.prefix + name, Value: tensor.New(tensor.Float32, shape...), Grad: tensor.New(tensor.Float32, shape...),
	}
	b.claim(w.Param.Name)
	w.Value, _ = tensor.Data[float32](w.Param.Value)
	w.own, _ = tensor.Data[float32](w.Param.Grad)
	w.Grad = w.own
	fill(rand.New(rand.NewPCG(b.net.config.Seed, uint64(w.index))), w.Value)
	b.net.weights = append(b.net.weights, w)
	b.net.params = append(b.net.params, w.Param)
	return w
}

// Buffer is a tensor that training changes and the optimiser does not.
func (b *Builder) Buffer(name string, x tensor.Tensor) {
	b.claim(b.prefix + name)
	b.net.buffers = append(b.net.buffers, &trainer.Param{Name: b.prefix + name, Value: x})
}

// claim holds names to being different.
func (b *Builder) claim(name string) {
	if b.names[name] {
		b.fail(fmt.Errorf("layers: two parameters are named %s: give their layers names", name))
	}
	b.names[name] = true
}

func (b *Builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// place numbers the layers that draw random numbers in each step.
func (b *Builder) place() uint64 {
	b.places++
	return b.places - 1
}
