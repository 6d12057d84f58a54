package fit

import (
	"context"
	"fmt"

	"peermesh/ops"
	"peermesh/trainer"
)

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

// synchronized is a model whose batch norms may look at the batches of all ranks. Where
// these differ in length it may have Weigh(weight float64), as those of nn/layers do.
type synchronized interface{ Synchronize(g *ops.Group) }

// synchronize has the model's batch norms do so, by a group of their own, lest they wait
// behind gradients.
func (l *loop[B]) synchronize(ctx context.Context, g *ops.Group) error {
	if !l.t.SyncBatchNorm {
		return nil
	}
	own, err := g.Split(ctx, g.Ranks())
	if err != nil {
		return fmt.Errorf("fit: a group for batch norms: %w", err)
	}
	l.t.Model.(synchronized).Synchronize(own)
	return nil
}

// release gives the model back as a network of this rank alone.
func (l *loop[B]) release() {
	if l.t.SyncBatchNorm {
		l.t.Model.(synchronized).Synchronize(nil)
	}
}

// inform tells a model what it may want to know of the batch that comes, which is the
// number-th of the run.
func (l *loop[B]) inform(b Batch[B], number int64) {
	if m, ok := l.t.Model.(interface{ SetStep(step int64) }); ok {
		m.SetStep(number)
	}
	if m, ok := l.t.Model.(interface{ Weigh(weight float64) }); ok && l.t.SyncBatchNorm {
		m.Weigh(float64(b.Samples) / float64(b.Total))
	}
}
