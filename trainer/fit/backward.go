package fit

import (
	"context"
	"fmt"

	"peermesh/ops/tensor"
	"peermesh/trainer"
)

// batches computes the gradients of this rank's batches of a step, which has own samples
// here. Those of all but the last stay here until the last one's travel.
func (l *loop[B]) batches(ctx context.Context, s trainer.Share, own int) error {
	left := 0
	for _, b := range l.feed.batches {
		left += min(b.Samples, 1)
	}
	if left == 0 {
		l.engine.Idle()
		return nil
	}
	for i, b := range l.feed.batches {
		if b.Samples == 0 {
			continue
		}
		if left--; left > 0 {
			l.engine.NoSync()
		}
		if m, ok := l.t.Model.(interface{ SetStep(step int64) }); ok {
			m.SetStep(s.Step*int64(l.t.Accumulate) + int64(i))
		}
		loss, err := l.backward(ctx, b, own)
		if err != nil {
			return err
		}
		l.sums[0] += loss * float64(b.Samples)
		if left > 0 {
			if err := l.engine.Wait(); err != nil { // which sends nothing
				return err
			}
			l.engine.Weigh(float64(own) / float64(s.Total))
		}
	}
	return nil
}

// backward does one batch. Its gradients count by its part of the samples, so that the
// sum over the batches is the mean over all, and are scaled as the loss would be.
func (l *loop[B]) backward(ctx context.Context, b Batch[B], own int) (loss float64, err error) {
	if err := l.run.hooks(func(c Callback) error { return c.BackwardStart(ctx, l.run) }); err != nil {
		return 0, err
	}
	factor := float64(b.Samples) / float64(own)
	if l.scaler != nil {
		factor *= l.scaler.Scale()
	}
	ready := l.engine.Ready
	if factor != 1 {
		ready = func(i int) {
			if i >= 0 && i < len(l.run.params) {
				scale(l.run.params[i].Grad, factor)
			}
			l.engine.Ready(i)
		}
	}
	done := lap(&l.run.times[PhaseCompute])
	loss, err = l.t.Model.ForwardBackward(ctx, b.Items, ready)
	done()
	if err != nil {
		return 0, fmt.Errorf("fit: model: %w", err)
	}
	return loss, l.run.hooks(func(c Callback) error { return c.BackwardEnd(ctx, l.run) })
}

// step is the optimiser's, with what comes before it. Where a gradient is not finite and
// there is a Scaler, the parameters stay, on all ranks alike.
func (l *loop[B]) step(ctx context.Context) error {
	clip := func() error {
		if l.t.Clip == 0 {
			return nil
		}
		return l.engine.clip(ctx, l.t.Clip)
	}
	if l.scaler == nil {
		if err := clip(); err != nil {
			return err
		}
		return l.engine.optimizer().Step()
	}
	seen, err := l.engine.finite(ctx)
	if err == nil {
		_, err = l.scaler.Step(l.engine.optimizer(), seen, clip)
	}
	return err
}

// scale multiplies floats in host memory; a missing gradient has none.
func scale(x tensor.Tensor, factor float64) {
	if x.Memory() == nil {
		return
	}
	single, _ := tensor.Data[float32](x)
	for i := range single {
		single[i] *= float32(factor)
	}
	double, _ := tensor.Data[float64](x)
	for i := range double {
		double[i] *= factor
	}
}

// add adds the elements of one to another of its type.
func add(to, x tensor.Tensor) {
	single, _ := tensor.Data[float32](x)
	if to, ok := tensor.Data[float32](to); ok {
		for i, v := range single {
			to[i] += v
		}
	}
	double, _ := tensor.Data[float64](x)
	if to, ok := tensor.Data[float64](to); ok {
		for i, v := range double {
			to[i] += v
		}
	}
}

// squares is the sum of those of the gradients' elements, in float64 and in order.
func squares(params []*trainer.Param) float64 {
	var sum float64
	for _, p := range params {
		if p.Grad.Memory() == nil {
			continue
		}
		single, _ := tensor.Data[float32](p.Grad)
		for _, v := range single {
			sum += float64(float64(v) * float64(v))
		}
		double, _ := tensor.Data[float64](p.Grad)
		for _, v := range double {
			sum += float64(v * v)
		}
	}
	return sum
}
