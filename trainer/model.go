package trainer

import (
	"context"

	"peermesh/ops/tensor"
)

// A Param is one trainable tensor of a model and its gradient, of one shape
// and element type.
type Param struct {
	Name  string
	Value tensor.Tensor
	Grad  tensor.Tensor
}

// A Model is what the trainer needs of anybody's network. B is its batch.
type Model[B any] interface {
	// Params are the parameters in forward order, the same on every rank.
	Params() []*Param

	// ForwardBackward leaves the gradients of the batch's mean loss in the
	// parameters' Grad and returns that loss. It calls ready(i) once for each
	// parameter, from the calling goroutine, when Params()[i].Grad is final:
	// from then until the step's end it may not touch that gradient. ready may
	// be nil.
	ForwardBackward(ctx context.Context, batch B, ready func(i int)) (loss float64, err error)
}
