package main

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	ml "github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/train/losses"

	"peermesh/ops/tensor"
	"peermesh/trainer"
)

// A Batch is n samples of some features each, row by row, and a class for each.
type Batch struct {
	X []float32
	Y []int32
}

// inputs are the batch as GoMLX takes it: float32[n, features] and int32[n, 1]. It
// copies.
func (b Batch) inputs(features int) (x, y *tensors.Tensor, err error) {
	n := len(b.Y)
	if n == 0 || len(b.X) != n*features {
		return nil, nil, fmt.Errorf("gomlx: a batch of %d values and %d classes: want %d values for each class", len(b.X), n, features)
	}
	x = tensors.FromFlatDataAndDimensions(b.X, n, features)
	y = tensors.FromFlatDataAndDimensions(b.Y, n, 1)
	return x, y, nil
}

// A Network says in GoMLX's terms what logits float32[n, classes] it makes of samples
// float32[n, features]. It makes its variables in c.
type Network func(c *ml.Context, x *graph.Node) (logits *graph.Node)

// A Model is a Network of GoMLX with a cross-entropy loss: a trainer.Model. It belongs
// to one goroutine.
type Model struct {
	features int
	logits   *ml.Exec // x → logits
	step     *ml.Exec // x, y → loss, gradients in the order of variables

	variables []*ml.Variable
	params    []*trainer.Param
}

var _ trainer.Model[Batch] = (*Model)(nil)

// New makes a model of a network. The seed decides the initial values, though with a
// DDP rank 0's count.
func New(b backends.Backend, features int, network Network, seed int64) (*Model, error) {
	c := ml.New()
	if err := c.SetRNGStateFromSeed(seed); err != nil {
		return nil, fmt.Errorf("gomlx: seed: %w", err)
	}
	m := &Model{features: features}
	var err error
	if m.logits, err = ml.NewExec(b, c, network.forward); err != nil {
		return nil, fmt.Errorf("gomlx: the network's graph: %w", err)
	}
	// Variables come into being, with their first values, when a graph is built.
	if _, err := m.logits.Exec(tensors.FromFlatDataAndDimensions(make([]float32, features), 1, features)); err != nil {
		return nil, fmt.Errorf("gomlx: the first run: %w", err)
	}
	if m.step, err = ml.NewExec(b, c.Reuse(), network.backward); err != nil {
		return nil, fmt.Errorf("gomlx: the gradients' graph: %w", err)
	}
	for v := range c.IterVariables() {
		if !v.Trainable {
			continue // the state of the random numbers, running means
		}
		if err := m.adopt(v); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (f Network) forward(c *ml.Context, x *graph.Node) *graph.Node { return f(c, x) }

// backward is the graph of a step: the mean loss, then a gradient for each trainable
// variable, in the context's order.
func (f Network) backward(c *ml.Context, x, y *graph.Node) []*graph.Node {
	c.SetTraining(x.Graph(), true)
	each := losses.SparseCategoricalCrossEntropyLogits([]*graph.Node{y}, []*graph.Node{f(c, x)})
	loss := graph.ReduceAllMean(each)
	return append([]*graph.Node{loss}, c.BuildTrainableVariablesGradientsGraph(loss)...)
}

// adopt makes a variable a parameter, with its first values.
func (m *Model) adopt(v *ml.Variable) error {
	if v.DType() != dtypes.Float32 {
		return fmt.Errorf("gomlx: %s is %v, want float32", v.ScopeAndName(), v.DType())
	}
	shape := v.Shape().Dimensions
	p := &trainer.Param{
		Name:  v.ScopeAndName(),
		Value: tensor.New(tensor.Float32, shape...),
		Grad:  tensor.New(tensor.Float32, shape...),
	}
	t, err := v.Value()
	if err != nil {
		return fmt.Errorf("gomlx: values of %s: %w", p.Name, err)
	}
	m.variables, m.params = append(m.variables, v), append(m.params, p)
	return pull(p.Name, p.Value, t)
}

// Params are the network's trainable variables in the order in which it made them.
func (m *Model) Params() []*trainer.Param { return m.params }

// ForwardBackward is trainer.Model's: GoMLX's graph computes all gradients, and then
// all are ready, from the last to the first.
func (m *Model) ForwardBackward(ctx context.Context, b Batch, ready func(i int)) (float64, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	x, y, err := b.inputs(m.features)
	if err != nil {
		return 0, err
	}
	if err := m.push(); err != nil {
		return 0, err
	}
	out, err := m.step.Exec(x, y)
	if err != nil {
		return 0, fmt.Errorf("gomlx: a step: %w", err)
	}
	if len(out) != 1+len(m.params) {
		return 0, fmt.Errorf("gomlx: %d gradients of %d parameters: some take no part in the loss", len(out)-1, len(m.params))
	}
	for i := len(m.params) - 1; i >= 0; i-- {
		if err := pull(m.params[i].Name, m.params[i].Grad, out[i+1]); err != nil {
			return 0, err
		}
		if ready != nil {
			ready(i)
		}
	}
	return float64(tensors.ToScalar[float32](out[0])), nil
}

// Right is how many samples of a batch get the highest logit at their class.
func (m *Model) Right(b Batch) (int, error) {
	x, _, err := b.inputs(m.features)
	if err != nil {
		return 0, err
	}
	if err := m.push(); err != nil {
		return 0, err
	}
	out, err := m.logits.Exec1(x)
	if err != nil {
		return 0, fmt.Errorf("gomlx: logits: %w", err)
	}
	right, classes := 0, out.Shape().Dim(-1)
	return right, tensors.ConstFlatData(out, func(logits []float32) {
		for i, class := range b.Y {
			if row := logits[i*classes:][:classes]; int(class) == highest(row) {
				right++
			}
		}
	})
}

func highest(row []float32) int {
	at := 0
	for i, v := range row {
		if v > row[at] {
			at = i
		}
	}
	return at
}

// push gives GoMLX the parameters' values.
func (m *Model) push() error {
	for i, v := range m.variables {
		t, err := v.Value()
		if err != nil {
			return fmt.Errorf("gomlx: values of %s: %w", m.params[i].Name, err)
		}
		values, ok := tensor.Data[float32](m.params[i].Value)
		if !ok {
			return fmt.Errorf("gomlx: %s is %v, want float32 in host memory", m.params[i].Name, m.params[i].Value)
		}
		if err := tensors.AssignFlatData(t, values); err != nil {
			return fmt.Errorf("gomlx: values of %s: %w", m.params[i].Name, err)
		}
	}
	return nil
}

// pull copies what GoMLX has computed.
func pull(name string, to tensor.Tensor, from *tensors.Tensor) error {
	values, ok := tensor.Data[float32](to)
	if !ok || from.Shape().Size() != len(values) {
		return fmt.Errorf("gomlx: %s is %v, what was computed for it %v", name, to, from.Shape())
	}
	return tensors.ConstFlatData(from, func(p []float32) { copy(values, p) })
}
