package fit

import (
	"context"
	"errors"
	"fmt"

	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/trainer"
)

// stats are a model's buffers where ranks step on their own: each has moved its running
// statistics by what it has seen. Where the models become one, so do these, as the mean.
type stats struct {
	own  []*trainer.Param // the model's
	met  []*trainer.Param // the mean, of a step that does not count yet
	kept []*trainer.Param // what all ranks have had in common last: a part of the state
}

func newStats(own []*trainer.Param) (*stats, error) {
	s := &stats{own: own, met: twins(own), kept: twins(own)}
	if err := trainer.LoadState(s.kept, own); err != nil {
		return nil, fmt.Errorf("fit: buffers: %w", err)
	}
	return s, nil
}

// twins are tensors of the same names, types and shapes, in the host's memory.
func twins(of []*trainer.Param) []*trainer.Param {
	all := make([]*trainer.Param, len(of))
	for i, p := range of {
		all[i] = &trainer.Param{Name: p.Name, Value: tensor.New(p.Value.DType(), p.Value.Shape()...)}
	}
	return all
}

// meet takes the mean over all ranks, which all do at once.
func (s *stats) meet(ctx context.Context, g *ops.Group) error {
	if err := trainer.LoadState(s.met, s.own); err != nil {
		return fmt.Errorf("fit: buffers: %w", err)
	}
	works := make([]*ops.Work, len(s.met))
	for i, p := range s.met {
		works[i] = g.AllReduce(ctx, p.Value, tensor.Avg)
	}
	var errs []error
	for i, w := range works {
		if err := w.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("fit: buffer %q: %w", s.met[i].Name, err))
		}
	}
	return errors.Join(errs...)
}

// keep has what meet has found count.
func (s *stats) keep() error {
	if err := trainer.LoadState(s.kept, s.met); err != nil {
		return fmt.Errorf("fit: buffers: %w", err)
	}
	return s.recall()
}

// recall gives the model what all have in common.
func (s *stats) recall() error {
	if err := trainer.LoadState(s.own, s.kept); err != nil {
		return fmt.Errorf("fit: buffers: %w", err)
	}
	return nil
}
