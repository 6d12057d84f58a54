package fit

import (
	"context"
	"fmt"

	"peermesh/ops/tensor"
	"peermesh/trainer"
)

// batches computes the gradients of this rank's batches of a step, and counts samples and
// losses. What all but the last leave stays here and travels with the last's; where that
// has no samples on this rank, or is not there, on its own. total is the number of
// samples of all ranks.
func (l *loop[B]) batches(ctx context.Context, s trainer.Share) (total int, err error) {
	for k := 0; ; k++ {
		if l.feed.err != nil {
			return 0, fmt.Errorf("fit: data: %w", l.feed.err)
		}
		b, last := l.feed.batch, l.feed.last(k)
		total += b.Total
		l.sums[1] += float64(b.Samples)
		takesPart := b.Samples > 0 || l.t.SyncBatchNorm // lest others wait for its statistics
		if takesPart {
			if err := l.contribute(ctx, b, s.Step*int64(l.t.Accumulate)+int64(k), total, last); err != nil {
				return 0, err
			}
		}
		if last && takesPart {
			return total, nil
		}
		if last || !l.feed.pull() {
			l.engine.Weigh(1 / l.amount(total))
			l.engine.Idle()
			return total, nil
		}
	}
}

// amount is how many samples so far a step's gradient is the mean of: of all ranks, or of
// this one where it steps on its own.
func (l *loop[B]) amount(total int) float64 {
	if l.apart != nil && !l.apart.warm {
		return max(l.sums[1], 1)
	}
	return float64(total)
}

// contribute does one batch, which is the number-th of the run, and sends its gradients
// if it is the step's last.
func (l *loop[B]) contribute(ctx context.Context, b Batch[B], number int64, total int, last bool) error {
	l.inform(b, number)
	// Gradients are of a mean. One batch counts by its weight; those that are added up, by
	// their samples, before all are divided by the number that the step will have.
	amount := l.amount(total)
	factor, weight := 1.0, float64(b.Samples)/amount
	if l.t.Accumulate > 1 {
		factor, weight = float64(b.Samples), 1/amount
	}
	if last {
		l.engine.Weigh(weight)
	} else {
		l.engine.NoSync()
	}
	loss, err := l.backward(ctx, b, factor)
	if err != nil {
		return err
	}
	l.sums[0] += loss * float64(b.Samples)
	if last {
		return nil
	}
	return l.engine.Wait() // which sends nothing
}

// prefetch has a model that computes elsewhere, as on a device, set out with the next step's
// first batch while gradients travel. It is a prediction: what another world or the end of the
// run makes wrong is pulled anew, or by nobody.
func (l *loop[B]) prefetch(s trainer.Share) error {
	m, ok := l.t.Model.(interface{ Prefetch(batch B) error })
	if !ok || l.t.Steps > 0 && s.Step+1 >= l.t.Steps || l.run.stop != "" {
		return nil
	}
	b, there := l.feed.peek()
	if !there || b.Samples == 0 {
		return nil
	}
	if err := m.Prefetch(b.Items); err != nil {
		return fmt.Errorf("fit: model: the next batch: %w", err)
	}
	return nil
}

// backward does both passes. Gradients are multiplied by the factor, and by the loss's
// scale as if that had been.
func (l *loop[B]) backward(ctx context.Context, b Batch[B], factor float64) (loss float64, err error) {
	if b.Samples == 0 {
		var none B
		b.Items = none
	} else if err := l.run.hooks(func(c Callback) error { return c.BackwardStart(ctx, l.run) }); err != nil {
		return 0, err
	}
	if l.scaler != nil {
		factor *= l.scaler.Scale()
	}
	lack := 0 // gradients that are not ready
	for _, p := range l.run.params {
		if p.Grad.Memory() != nil {
			lack++
		}
	}
	ready := func(i int) {
		if i >= 0 && i < len(l.run.params) && l.run.params[i].Grad.Memory() != nil {
			lack--
			if factor != 1 {
				scale(l.run.params[i].Grad, factor)
			}
		}
		l.engine.Ready(i)
	}
	done := lap(&l.run.times[PhaseCompute])
	loss, err = l.t.Model.ForwardBackward(ctx, b.Items, ready)
	done()
	l.lacking = lack > 0
	if err != nil {
		return 0, fmt.Errorf("fit: model: %w", err)
	}
	if b.Samples == 0 {
		return 0, nil
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
		return l.blame(ctx, l.engine.clip(ctx, l.t.Clip))
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
