package trainer

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"peermesh/ops/tensor"
	"peermesh/trainer/internal/vector"
)

// groups is what every optimiser is made of: parameters in groups, with what is
// remembered of each. An optimiser adds its settings and its arithmetic.
type groups struct {
	name    string // of the optimiser, for its errors
	all     []group
	rates   []float64 // by group
	momenta []float64 // by group; empty without momentum
}

// A group is parameters that have the same settings.
type group struct {
	params []*Param
	names  []string          // the parameters' when they came, to name their state
	slots  []string          // what is remembered of each element; "" for nothing
	memory [][]tensor.Tensor // by parameter and slot, in the parameter's shape
	steps  []int64           // by parameter: how many it has taken

	start    float64 // what the memory is filled with
	momentum setting // name and limit; without a name there is none
	still    bool    // there is no memory for momentum, so it must stay 0

	step   func(m motion) vector.Step // what one parameter's elements share
	single loop[float32]              // the arithmetic, by element type
	double loop[float64]
}

// A loop moves elements: it is the optimiser's formula.
type loop[T real] func(e elements[T], by vector.Step)

// many moves several elements at a time, where there is a kernel for that, and has the
// loop move what the kernel leaves over.
func many(rest loop[float32]) loop[float32] {
	return func(e elements[float32], by vector.Step) {
		rest(e.from(by.Move(e.x, e.grad, e.memory)), by)
	}
}

// A motion is what the arithmetic is told for a parameter besides its settings.
type motion struct {
	lr, momentum float64
	step         int64 // which of the parameter's own, from 1
}

// elements are a parameter's, or the last of them.
type elements[T real] struct {
	x, grad []T
	memory  [3][]T // by slot; nil for none
}

func elementsOf[T real](p *Param, memory []tensor.Tensor) elements[T] {
	e := elements[T]{x: data[T](p.Value)}
	e.grad = data[T](p.Grad)[:len(e.x)]
	for k, m := range memory {
		if m.Memory() != nil {
			e.memory[k] = data[T](m)[:len(e.x)]
		}
	}
	return e
}

// from leaves out the first k.
func (e elements[T]) from(k int) elements[T] {
	e.x, e.grad = e.x[k:], e.grad[k:]
	for i, m := range e.memory {
		if m != nil {
			e.memory[i] = m[k:]
		}
	}
	return e
}

// add checks the parameters of a group, whose gradients may be absent as yet,
// and gives them memory.
func (g *groups) add(n group, lr float64) error {
	if len(n.params) == 0 {
		return fmt.Errorf("trainer: %s: no parameters", g.name)
	}
	seen := make(map[*Param]bool)
	for i := range g.all {
		for _, p := range g.all[i].params {
			seen[p] = true
		}
	}
	for _, p := range n.params {
		err := trainable(p)
		if err == nil && seen[p] {
			err = fmt.Errorf("parameter %q is given twice", p.Name)
		}
		if err != nil {
			return fmt.Errorf("trainer: %s: %w", g.name, err)
		}
		seen[p] = true
	}
	for _, p := range n.params {
		memory := make([]tensor.Tensor, len(n.slots))
		for k, slot := range n.slots {
			if slot != "" {
				memory[k] = filled(n.start, p.Value)
			}
		}
		n.names, n.memory = append(n.names, p.Name), append(n.memory, memory)
	}
	n.steps = make([]int64, len(n.params))
	g.all = append(g.all, n)
	g.rates = append(slices.Clip(g.rates), lr)
	if n.momentum.name != "" {
		g.momenta = append(slices.Clip(g.momenta), n.momentum.value)
	}
	return nil
}

// slotIf is a slot that only some settings need.
func slotIf(needed bool, name string) string {
	if needed {
		return name
	}
	return ""
}

// filled is a tensor in x's type and shape whose elements are all v.
func filled(v float64, x tensor.Tensor) tensor.Tensor {
	t := tensor.New(x.DType(), x.Shape()...)
	single, double := data[float32](t), data[float64](t) // one is nil
	for i := range single {
		single[i] = float32(v)
	}
	for i := range double {
		double[i] = v
	}
	return t
}

// Rates are the learning rates, by group, to read and to write.
func (g *groups) Rates() []float64 { return g.rates }

// Momenta are the momenta, by group, to read and to write.
func (g *groups) Momenta() []float64 { return g.momenta }

// Step moves every parameter that has a gradient.
func (g *groups) Step() error {
	for i := range g.all {
		if err := g.check(i); err != nil {
			return err
		}
	}
	for i := range g.all {
		n := &g.all[i]
		m := motion{lr: g.rates[i]}
		if len(g.momenta) != 0 {
			m.momentum = g.momenta[i]
		}
		for j, p := range n.params {
			if !hasGradient(p) {
				continue
			}
			n.steps[j]++
			m.step = n.steps[j]
			by := n.step(m)
			if p.Value.DType() == tensor.Float32 {
				n.single(elementsOf[float32](p, n.memory[j]), by)
			} else {
				n.double(elementsOf[float64](p, n.memory[j]), by)
			}
		}
	}
	return nil
}

// check checks a group again, before anything moves: anyone may have put other
// tensors in its parameters since, or other numbers in its settings and state.
func (g *groups) check(i int) error {
	n := &g.all[i]
	lr, momentum := setting{"a learning rate", g.rates[i], math.Inf(1)}, n.momentum
	if len(g.momenta) != 0 {
		momentum.value = g.momenta[i]
	}
	if !lr.valid() || !momentum.valid() {
		return checkSettings(g.name+" step", lr, momentum)
	}
	if n.still && momentum.value != 0 {
		return fmt.Errorf("trainer: %s step: a momentum of %v, after none at first", g.name, momentum.value)
	}
	for j, p := range n.params {
		err := trainable(p)
		if err == nil && n.steps[j] < 0 {
			err = fmt.Errorf("parameter %q has taken %d steps", p.Name, n.steps[j])
		}
		if err == nil && !n.fits(j) {
			err = fmt.Errorf("parameter %q has become %v", p.Name, p.Value)
		}
		if err != nil {
			return fmt.Errorf("trainer: %s step: %w", g.name, err)
		}
	}
	return nil
}

// fits says whether the memory of parameter j is still for what it is.
func (n *group) fits(j int) bool {
	v := n.params[j].Value
	for _, m := range n.memory[j] {
		if m.Memory() != nil && (m.Len() != v.Len() || m.DType() != v.DType()) {
			return false
		}
	}
	return true
}

// trainable checks that a parameter's elements, and its gradient's if there is
// one, are floats that the host can address.
func trainable(p *Param) error {
	switch {
	case p == nil:
		return errors.New("a parameter is nil")
	case !addressable(p.Value):
		return fmt.Errorf("parameter %q is %v, want float32 or float64 in host memory", p.Name, p.Value)
	case !hasGradient(p):
		return nil
	case p.Grad.DType() != p.Value.DType() || p.Grad.Len() != p.Value.Len():
		return fmt.Errorf("parameter %q is %v, its gradient %v", p.Name, p.Value, p.Grad)
	case !addressable(p.Grad):
		return fmt.Errorf("parameter %q has a gradient outside host memory", p.Name)
	}
	return nil
}

func hasGradient(p *Param) bool { return p.Grad.Memory() != nil }

func addressable(x tensor.Tensor) bool {
	_, single := tensor.Data[float32](x)
	_, double := tensor.Data[float64](x)
	return single || double
}

// data is the elements of a tensor that has passed trainable.
func data[T real](x tensor.Tensor) []T {
	e, _ := tensor.Data[T](x)
	return e
}
