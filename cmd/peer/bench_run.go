package main

import (
	"context"
	"fmt"
	"time"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

// How often an operation is run when --iters and --warmup do not say, which is what
// the scripts that measure Gloo and Open MPI do, too.
const (
	minRuns, maxRuns = 5, 3000
	maxWarmup        = 100
	// A pair warms up longer with small messages, which are over in no time.
	maxPairWarmup    = 200
	smallMessage     = 64 << 10
	pairEstimate     = 3 // runs by which the time of one is estimated
	groupEstimate    = 2
	overheadMeasured = 1000 // runs of nothing
)

// A bench is one rank's part in the measuring. All ranks go through the same
// operations in the same order.
type bench struct {
	plan   *benchPlan
	group  *ops.Group
	peer   func(rank int) string
	report func(m measurement) error
	trace  *timeline
}

// run measures all that the plan has.
func (b *bench) run(ctx context.Context) error {
	if err := agree(ctx, b.group, fmt.Sprintf("%v, --trace %v", b.plan, b.trace != nil), b.peer); err != nil {
		return err
	}
	if err := b.trace.compare(ctx, b.group); err != nil {
		return err
	}
	if b.plan.measure {
		if err := b.group.Measure(ctx); err != nil {
			return fmt.Errorf("measuring the links: %w", err)
		}
	}
	overhead := idle(ctx)
	wrong := 0
	for _, op := range b.plan.ops {
		if op.pair && b.group.Size() < 2 {
			continue
		}
		for _, typ := range b.plan.dtypes {
			for _, size := range b.sizes(op) {
				m, err := b.measure(ctx, op, typ, size)
				if err != nil {
					return fmt.Errorf("%v of %v, %v: %w", op, size, typ, err)
				}
				if !m.OK {
					wrong++
				}
				m.Overhead = overhead
				if err := b.report(m); err != nil {
					return err
				}
			}
		}
	}
	if err := b.trace.gather(ctx, b.group); err != nil {
		return err
	}
	if wrong > 0 {
		return fmt.Errorf("%d of the results were wrong", wrong)
	}
	return nil
}

// sizes are those of an operation: what carries nothing has one.
func (b *bench) sizes(op benchOp) []int64 {
	if op.bus(2) == 0 {
		return []int64{0}
	}
	return b.plan.sizes
}

// idle is what the clock and the loop around a run cost by themselves, in µs.
func idle(ctx context.Context) float64 {
	nothing := trial{run: func(context.Context) error { return nil }}
	times := make([]float64, overheadMeasured)
	for i := range times {
		times[i], _ = nothing.time(ctx) // it cannot fail
	}
	return summarize(times).median
}

// time is what one run takes on this rank, in µs.
func (t trial) time(ctx context.Context) (float64, error) {
	begin := time.Now()
	err := t.run(ctx)
	us := float64(time.Since(begin).Nanoseconds()) / 1e3
	if t.per > 0 {
		us /= t.per
	}
	return us, err
}

// measure checks an operation, and then times it.
func (b *bench) measure(ctx context.Context, op benchOp, typ benchType, size int64) (m measurement, err error) {
	n := b.group.Size()
	s := &stage{g: b.group, rank: b.group.Rank(), n: n, typ: typ, count: max(1, int(size)/typ.dtype.Size())}
	m = measurement{Op: op.name, World: n, Bytes: size, DType: typ.String()}
	m.Total = int64(s.count * typ.dtype.Size())
	if op.parts {
		s.count = max(1, s.count/n)
		m.Total = int64(n * s.count * typ.dtype.Size())
	}
	if size == 0 {
		m.Total = 0
	}
	if op.pair && s.rank > 1 {
		return b.watch(ctx, m)
	}
	t := op.prepare(s)
	if m.OK, err = b.check(ctx, t); err != nil {
		return m, err
	}
	runs, err := b.runs(ctx, op, t)
	if err != nil {
		return m, err
	}
	for range b.warmup(op, size, runs) {
		if err := t.run(ctx); err != nil {
			return m, err
		}
	}
	times, err := b.times(ctx, op, t, runs)
	if err != nil {
		return m, err
	}
	m.finish(times, op.bus(float64(n)))
	return m, nil
}

// watch takes part in what all ranks do while two of them are measured.
func (b *bench) watch(ctx context.Context, m measurement) (measurement, error) {
	var err error
	if m.OK, err = b.check(ctx, trial{run: func(context.Context) error { return nil }}); err != nil {
		return m, err
	}
	runs, err := b.root(ctx, 0)
	if err != nil {
		return m, err
	}
	times := make([]float64, int(runs))
	m.finish(times, 1)
	return m, b.slowest(ctx, times)
}

// check runs once, and says whether every rank finds the result right.
func (b *bench) check(ctx context.Context, t trial) (bool, error) {
	if t.before != nil {
		t.before()
	}
	if err := t.run(ctx); err != nil {
		return false, err
	}
	verdict := []int32{1}
	if t.right != nil && !t.right() {
		verdict[0] = 0
	}
	err := b.group.AllReduce(ctx, tensor.Of(verdict), tensor.Min).Wait()
	return verdict[0] == 1, err
}

// runs is how often to run: what the budget allows by rank 0's estimate.
func (b *bench) runs(ctx context.Context, op benchOp, t trial) (int, error) {
	var estimated time.Duration
	if b.plan.iters == 0 {
		n := groupEstimate
		if op.pair {
			n = pairEstimate
		}
		if err := t.run(ctx); err != nil {
			return 0, err
		}
		begin := time.Now()
		for range n {
			if err := t.run(ctx); err != nil {
				return 0, err
			}
			if !op.pair {
				if err := b.group.Barrier(ctx).Wait(); err != nil {
					return 0, err
				}
			}
		}
		estimated = time.Since(begin) / time.Duration(n)
	}
	runs := float64(b.plan.iters)
	if runs == 0 {
		runs = min(maxRuns, max(minRuns, b.plan.budget/max(estimated.Seconds(), 1e-6)))
	}
	runs, err := b.root(ctx, runs)
	return int(runs), err
}

// root is rank 0's number, on every rank.
func (b *bench) root(ctx context.Context, x float64) (float64, error) {
	word := []float64{x}
	err := b.group.Broadcast(ctx, tensor.Of(word), b.group.Global(0)).Wait()
	return word[0], err
}

// warmup is how many runs go before those that are timed.
func (b *bench) warmup(op benchOp, size int64, runs int) int {
	switch {
	case b.plan.warmup >= 0:
		return b.plan.warmup
	case !op.pair:
		return min(runs/10, maxWarmup)
	case size <= smallMessage:
		return min(runs, maxPairWarmup)
	}
	return 1
}

// times are those of the slowest rank, run by run, in µs. A barrier goes before
// each run, and is not timed; a pair needs none, since its runs end where they began.
func (b *bench) times(ctx context.Context, op benchOp, t trial, runs int) ([]float64, error) {
	times := make([]float64, runs)
	for i := range times {
		if !op.pair {
			if err := b.group.Barrier(ctx).Wait(); err != nil {
				return nil, err
			}
		}
		var err error
		if times[i], err = t.time(ctx); err != nil {
			return nil, err
		}
	}
	if op.pair && b.group.Rank() != 0 {
		clear(times) // the clock is rank 0's
	}
	return times, b.slowest(ctx, times)
}

// slowest leaves the greatest of all ranks' times.
func (b *bench) slowest(ctx context.Context, times []float64) error {
	return b.group.AllReduce(ctx, tensor.Of(times), tensor.Max).Wait()
}
