package fit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"peermesh/ops"
	"peermesh/trainer"
	"peermesh/trainer/internal/finite"
)

// unsound is the index of the first parameter whose gradient has an element that is not
// finite; past the last: none has.
func unsound(params []*trainer.Param) int {
	for i, p := range params {
		if !finite.Tensor(p.Grad) {
			return i
		}
	}
	return len(params)
}

// nameOf is empty past the last.
func nameOf(params []*trainer.Param, i int) string {
	switch {
	case i >= len(params):
		return ""
	case params[i].Name == "":
		return fmt.Sprint("parameter ", i)
	}
	return params[i].Name
}

// unsound is the name of the first parameter whose gradient is not finite, or empty, and
// whether a Scaler skips the step for it. All ranks ask at once.
func (l *loop[B]) unsound(ctx context.Context) (name string, skips bool, err error) {
	i, err := l.engine.unsound(ctx)
	name = nameOf(l.run.params, i)
	return name, l.scaler != nil && name != "", err
}

// blame adds to the error of a norm on which ranks' losses of the step were not finite. It
// costs nothing before there is one: averages do not say whose fault they are.
func (l *loop[B]) blame(ctx context.Context, failed error) error {
	if _, ok := errors.AsType[*trainer.NormError](failed); !ok || l.apart != nil {
		return failed
	}
	all, err := ops.AllGatherObject(ctx, l.run.group, finite.Number(l.loss))
	if err != nil {
		return errors.Join(failed, fmt.Errorf("fit: asking for losses: %w", err))
	}
	// All ranks know now, and return the same. The barrier has no one end the world before,
	// and fails only where that has ended.
	_ = l.run.group.Barrier(ctx).Wait()
	var ranks []string
	for rank, sound := range all {
		if !sound {
			ranks = append(ranks, fmt.Sprint(rank))
		}
	}
	if len(ranks) == 0 {
		return fmt.Errorf("fit: %w; the loss is finite on all ranks", failed)
	}
	return fmt.Errorf("fit: %w; the loss is not finite on rank %s", failed, strings.Join(ranks, ", "))
}
