package main

import (
	"context"
	"errors"
	"fmt"

	"peermesh/ops"
	"peermesh/trainer"
	"peermesh/trainer/compress"
	"peermesh/trainer/local"
)

// methodDDP is --method's default: gradients are averaged in every step.
const methodDDP = "ddp"

// Syncing is how often the ranks come together. The names are those of package local.
type Syncing struct {
	Method    string `default:"ddp" enum:"ddp,diloco,localsgd,pairs,sma,streaming" help:"Average gradients in each step (ddp), or let ranks step on their own and bring their models together: localsgd, diloco, streaming, sma or pairs."`
	SyncEvery int    `placeholder:"H" help:"Steps from one synchronisation to the next (localsgd, diloco, streaming: 100; sma, pairs: 1)."`
}

func (s *Syncing) validate(net string, c *Compression) error {
	switch {
	case !s.local() && s.SyncEvery != 0:
		return errors.New("--sync-every is for a --method other than ddp, whose ranks come together in every step")
	case s.local() && net == netTutorial:
		return errors.New("--method is for --net convnet: the tutorial averages its gradients")
	case s.SyncEvery < 0:
		return fmt.Errorf("--sync-every is %d, want at least 1", s.SyncEvery)
	case !s.local():
		return nil
	}
	_, err := s.method(c)
	return err
}

// local reports whether ranks step on their own.
func (s *Syncing) local() bool { return s.Method != "" && s.Method != methodDDP }

// method is what package local makes of the flags, --compress among them.
func (s *Syncing) method(c *Compression) (local.Method, error) {
	var codec ops.Codec
	if c.compresses() {
		hook, err := compress.New(c.Compress, nil)
		coded, ok := hook.(*compress.Coded)
		if err != nil || !ok {
			return nil, fmt.Errorf("--compress %s is for gradients: --method %s has none to send", c.Compress, s.Method)
		}
		codec = coded.Codec
	}
	m, err := local.Named(s.Method, s.SyncEvery, codec)
	if err != nil {
		return nil, fmt.Errorf("--method %s: %w", s.Method, err)
	}
	return m, nil
}

// settings are what must be alike, in words; nothing where they are the default.
func (s *Syncing) settings() string {
	if !s.local() {
		return ""
	}
	return fmt.Sprintf(", --method %s, --sync-every %d", s.Method, s.SyncEvery)
}

// newReplica is the model's ties to the other ranks' where they step on their own, in
// place of those by gradients.
func (e *elastic) newReplica() (err error) {
	if !e.plan.local() {
		return nil
	}
	m, err := e.plan.method(&e.plan.Compression)
	if err == nil {
		e.replica, err = local.New(m, e.recipe.params)
	}
	return err
}

// alone takes this rank's own step, and then what is due with the others. At an epoch's
// end and the run's all ranks have one model, to be compared and tested.
func (e *elastic) alone(ctx context.Context, s trainer.Share) (loss float64, err error) {
	r := e.recipe
	if len(s.Indices) > 0 {
		r.fill(r.set, s.Indices)
		r.trace.phase("forward")
		if loss, err = r.model.ForwardBackward(ctx, r.batch, nil); err != nil {
			return 0, err
		}
		r.trace.phase("optimizer")
		if err := r.optimizer.Step(); err != nil {
			return 0, err
		}
	}
	r.trace.phase("wait")
	if s.Consumed+int64(s.Total) >= int64(e.Sampler.Len()) || e.Steps > 0 && s.Step+1 >= e.Steps {
		return loss, e.replica.Settle()
	}
	return loss, e.replica.Exchange()
}
