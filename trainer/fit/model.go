package fit

import "peermesh/trainer"

// buffered is a model with tensors that forward changes, as those of package nn/layers with
// their running statistics.
type buffered interface{ Buffers() []*trainer.Param }

// buffers are what is kept alike on all ranks and saved beside the parameters: what the
// settings say, else what the model says that it has.
func (t *Trainer[B]) buffers() []*trainer.Param {
	if m, ok := t.Model.(buffered); ok && t.DDP.Buffers == nil {
		return m.Buffers()
	}
	return t.DDP.Buffers
}
