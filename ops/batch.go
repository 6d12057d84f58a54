package ops

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"peermesh/ops/tensor"
)

// A P2P is one message of a Batch: X to a rank, or from it into X.
type P2P struct {
	Send bool // or else receive
	X    tensor.Tensor
	Peer int
	Tag  uint32
}

// Batch issues messages as Isend and Irecv would, one after the other, as one
// Work: torch.distributed's batch_isend_irecv. The Work is done when all are; its
// error joins theirs. Batches of several ranks that only wait for each other's
// end, in whatever order they list their messages. When one of the arguments is
// bad, nothing is issued.
func (g *Group) Batch(ctx context.Context, batch []P2P) *Work {
	messages := make([]*message, len(batch))
	for i, b := range batch {
		m, err := g.message(b.X, b.Peer, b.Tag, b.Send)
		if err != nil {
			return failed(fmt.Errorf("ops: message %d of %d: %w", i, len(batch), err))
		}
		messages[i] = m
	}
	if len(messages) == 0 {
		return failed(nil)
	}
	w := newWork()
	errs := make([]error, len(messages))
	var left atomic.Int64
	left.Store(int64(len(messages)))
	for i, m := range messages {
		m.turn = func() error {
			errs[i] = m.exchange()
			if left.Add(-1) == 0 {
				w.finish(errors.Join(errs...))
			}
			return errs[i]
		}
		m.post(ctx)
	}
	return w
}
