package compress

import (
	"context"
	"fmt"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/trainer"
)

// A Hook is a trainer.Hook as this package has them: with a state, a part of which all
// ranks have in common.
type Hook interface {
	trainer.Hook
	// State is what all ranks have alike, to save and carry: it changes while gradients are
	// averaged, so it goes among a trainer.State's Buffers. It may be empty.
	State() []*trainer.Param
	// Reset forgets what is this rank's own, before the first step of a new world.
	Reset()
}

// Coded is a hook that sends gradients through a codec, with feedback: what a rank's
// encodings round off, of its own gradients and of the partial sums that pass it, it adds
// to its next ones. So over many steps the sum of what was applied is the sum of what
// was computed, whatever the codec (Karimireddy et al., ICML 2019).
//
//	hook := &compress.Coded{Codec: compress.Int8(0)}
//	ddp, err := trainer.NewDDP(ctx, g, params, trainer.DDPConfig{Hook: hook})
//
// All ranks have the same Codec. Its zero value has none, which is an error of each step.
type Coded struct {
	Codec      ops.Codec
	NoFeedback bool // what is rounded off is lost
	Feedback
}

// Reduce is trainer.Hook's. Elements that are not finite stay out of the feedback.
func (c *Coded) Reduce(ctx context.Context, g *ops.Group, b trainer.Bucket) trainer.Pending {
	coding := ops.Coding{Codec: c.Codec}
	if !c.NoFeedback {
		var err error
		if coding.Lost, err = c.addTo(b); err != nil {
			return trainer.Failed(fmt.Errorf("compress: %w", err))
		}
	}
	return g.AllReduceCoded(ctx, b.Data, tensor.Sum, coding)
}

// State is empty: a codec has none, and feedback is each rank's own.
func (c *Coded) State() []*trainer.Param { return nil }
