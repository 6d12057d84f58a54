package convnet

import (
	"errors"
	"fmt"

	"peermesh/gpu"
	"peermesh/ops/tensor"
	"peermesh/trainer"
)

// An Optimizer moves a net's parameters on the device, where what it remembers of them is
// too. It is a trainer.Optimizer, with the arithmetic of the one in package trainer that it is
// named after: from equal gradients both make equal bits. Its State has the same names, types
// and shapes, so that either goes on from what the other has saved.
type Optimizer struct {
	n *Net
	// host is the optimiser of package trainer with these settings, of a parameter that has
	// no gradient: it keeps the rates, and checks them.
	host   trainer.Optimizer
	kernel string
	slots  []string // what is remembered of each element
	memory []*gpu.Memory
	steps  []int64 // by parameter
	// numbers are the kernel's settings in a step, after rate, decay and sign.
	numbers []func(step int64) float64
	decay   float64
	sign    float64
	last    []int // further numbers, as they are

	all stock
}

var _ trainer.Optimizer = (*Optimizer)(nil)

// alone is a parameter for an optimiser that moves nothing.
func alone() []*trainer.Param {
	return []*trainer.Param{{Name: "none", Value: tensor.New(tensor.Float32, 1)}}
}

// Adadelta is trainer.NewAdadelta for the net's parameters. The caller closes it, before the
// net.
func (n *Net) Adadelta(c trainer.AdadeltaConfig) (*Optimizer, error) {
	host, err := trainer.NewAdadelta(alone(), c)
	if err != nil {
		return nil, err
	}
	rho, eps := trainer.OrDefault(c.Rho, 0.9), trainer.OrDefault(c.Eps, 1e-6)
	o := &Optimizer{n: n, host: host, kernel: "adadelta", slots: []string{"square_avg", "acc_delta"}, decay: c.WeightDecay, sign: sign(c.Maximize),
		numbers: []func(int64) float64{always(rho), always(1 - rho), always(eps)}}
	return o.remember()
}

// SGD is trainer.NewSGD for the net's parameters. The caller closes it, before the net.
func (n *Net) SGD(c trainer.SGDConfig) (*Optimizer, error) {
	host, err := trainer.NewSGD(alone(), c)
	if err != nil {
		return nil, err
	}
	o := &Optimizer{n: n, host: host, kernel: "sgd", decay: c.WeightDecay, sign: sign(c.Maximize), last: []int{0}}
	if c.Momentum != 0 {
		o.slots = []string{"momentum_buffer"}
	}
	if c.Nesterov {
		o.last[0] = 1
	}
	o.numbers = []func(int64) float64{func(int64) float64 { return host.Momenta()[0] }, func(step int64) float64 {
		if step == 1 {
			return 1 // the first gradient is not damped
		}
		return 1 - c.Dampening
	}}
	return o.remember()
}

func always(v float64) func(int64) float64 { return func(int64) float64 { return v } }

func sign(maximize bool) float64 {
	if maximize {
		return -1
	}
	return 1
}

// remember makes the memory, of zeros.
func (o *Optimizer) remember() (*Optimizer, error) {
	o.steps, o.all = make([]int64, len(o.n.params)), stock{d: o.n.d}
	for range o.slots {
		o.memory = append(o.memory, o.all.memory(int(o.n.values.Len()/4), 4))
	}
	if o.all.err != nil {
		return nil, errors.Join(fmt.Errorf("convnet: %s: %w", o.kernel, o.all.err), o.all.close())
	}
	return o, nil
}

// Close frees what the optimiser remembers.
func (o *Optimizer) Close() error { return o.all.close() }

// Step queues the move of every parameter, and does not wait for it; who reads a parameter,
// or writes its gradient, does. If the device fails on the way, some have moved and others not.
func (o *Optimizer) Step() error {
	if err := o.host.Step(); err != nil { // of the settings
		return err
	}
	if err := o.n.bound(); err != nil {
		return err
	}
	p := o.n.program
	for i, param := range o.n.params {
		o.steps[i]++
		value, _ := at(param.Value)
		grad, _ := at(param.Grad)
		addresses := []gpu.Argument{value, grad}
		for _, m := range o.memory {
			addresses = append(addresses, gpu.At(m, param.Value.Offset()))
		}
		if len(o.memory) == 0 {
			addresses = append(addresses, value) // for what is not used without momentum
		}
		numbers := []int{floatBits(o.host.Rates()[0]), floatBits(o.decay), floatBits(o.sign)}
		for _, f := range o.numbers {
			numbers = append(numbers, floatBits(f(o.steps[i])))
		}
		p.run(o.kernel, param.Value.Len(), addresses, append(numbers, o.last...)...)
	}
	used := append([]*gpu.Memory{o.n.values}, o.memory...)
	for _, st := range o.n.stages {
		used = append(used, st.grads) // who writes the next gradients waits until these are read
	}
	for _, m := range used {
		p.try(func() error { return m.After(p.s) })
	}
	if err := p.end(); err != nil {
		return fmt.Errorf("convnet: %s: %w", o.kernel, err)
	}
	return nil
}

// Rates are the learning rate, to read and to write.
func (o *Optimizer) Rates() []float64 { return o.host.Rates() }

// Momenta are the momentum, likewise, if there is one.
func (o *Optimizer) Momenta() []float64 { return o.host.Momenta() }

// State is all that a step depends on; see trainer.Optimizer.
func (o *Optimizer) State() []*trainer.Param {
	var state []*trainer.Param
	add := func(name string, value tensor.Tensor) {
		state = append(state, &trainer.Param{Name: name, Value: value})
	}
	for i, p := range o.n.params {
		add(p.Name+".step", tensor.Of(o.steps[i:i+1]))
		for k, slot := range o.slots {
			add(p.Name+"."+slot, part(o.memory[k], int(p.Value.Offset()/4), p.Value))
		}
	}
	add("lr", tensor.Of(o.Rates()))
	if m := o.Momenta(); len(m) != 0 {
		add("momentum", tensor.Of(m))
	}
	return state
}
