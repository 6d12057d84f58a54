package fit

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"peermesh/trainer/internal/finite"
)

// LearningRateMonitor logs the rate of each group of parameters, as "lr" or "lr/0" and so
// on, and with Momentum theirs.
type LearningRateMonitor struct {
	RankZero
	Momentum bool
}

// UpdateStart logs the rates that the step is taken with.
func (m *LearningRateMonitor) UpdateStart(_ context.Context, r *Run) error {
	r.lateLog("lr", r.Optimizer().Rates())
	if m.Momentum {
		r.lateLog("momentum", r.Optimizer().Momenta())
	}
	return nil
}

// lateLogging is Logging in UpdateStart.
func (r *Run) lateLogging() bool { return (r.state.Step+1)%r.logEvery == 0 }

// lateLog logs in UpdateStart, where the step does not count yet, if it will be logged.
func (r *Run) lateLog(name string, values []float64) {
	if !r.lateLogging() {
		return
	}
	for i, v := range values {
		if len(values) == 1 {
			r.Log(name, v)
		} else {
			r.Log(name+"/"+strconv.Itoa(i), v)
		}
	}
}

// GradientNorm logs the norm of all gradients before they are clipped, as "grad_norm",
// and with Limit stops the run when it is above it or not a number: after the next step, as
// ranks agree on it in that. A step that a Scaler skips, as gradients are not finite, is not
// judged.
type GradientNorm struct {
	Base
	Limit float64 // zero: none
}

// UpdateStart takes the norm, on all ranks.
func (n *GradientNorm) UpdateStart(ctx context.Context, r *Run) error {
	if !r.lateLogging() && n.Limit == 0 {
		return nil
	}
	norm, err := r.GradNorm(ctx)
	if err != nil {
		return err
	}
	r.lateLog("grad_norm", []float64{norm})
	if !(n.Limit > 0) || norm <= n.Limit {
		return nil
	}
	why := fmt.Sprintf("the gradients have a norm of %v, above %v", norm, n.Limit)
	if !finite.Number(norm) { // alike on all ranks
		name, skips, err := r.unsound(ctx)
		if err != nil || skips {
			return err
		}
		if name != "" {
			why += fmt.Sprintf(": that of %q is the first that is not finite", name)
		}
	}
	r.Stop(why)
	return nil
}

// Throughput logs how many samples all ranks together train on in a second, over the
// steps since it last did, as "samples_per_second".
type Throughput struct {
	RankZero
	samples int64
	elapsed time.Duration
}

// StepEnd logs the rate since it last did.
func (t *Throughput) StepEnd(_ context.Context, r *Run) error {
	if !r.Logging() {
		return nil
	}
	samples, elapsed := r.Samples(), r.Elapsed()
	if elapsed > t.elapsed {
		r.Log("samples_per_second", float64(samples-t.samples)/(elapsed-t.elapsed).Seconds())
	}
	t.samples, t.elapsed = samples, elapsed
	return nil
}

// A Profiler writes what rank 0 has spent its time on, as a table at the end.
type Profiler struct {
	RankZero
	Out io.Writer
}

// FitEnd writes the table.
func (p *Profiler) FitEnd(_ context.Context, r *Run) error {
	return profile(p.Out, r.Times(), r.Elapsed(), r.taken)
}

func profile(w io.Writer, times []time.Duration, total time.Duration, steps int64) error {
	text := fmt.Sprintf("%-22s %12s %12s %6s\n", "phase", "total", "a step", "share")
	line := func(name string, d time.Duration) {
		text += fmt.Sprintf("%-22s %12v %12v %5.1f%%\n", name, d.Round(time.Microsecond),
			(d / time.Duration(max(steps, 1))).Round(time.Microsecond), 100*float64(d)/float64(max(total, 1)))
	}
	rest := total
	for p, d := range times {
		line(Phase(p).String(), d)
		rest -= d
	}
	line("all else", max(rest, 0))
	line("run", total)
	_, err := io.WriteString(w, text)
	return err
}
