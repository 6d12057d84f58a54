package fit

import (
	"cmp"
	"context"
	"maps"
	"time"

	"peermesh/ops"
	"peermesh/trainer"
)

// Metrics are numbers with names. Those of a validation are called "val/…", those of
// training "train/…".
type Metrics = map[string]float64

const (
	// TrainLoss is the mean loss of the last step, over the samples of all ranks.
	TrainLoss = "train/loss"
	// EpochLoss is the mean over the epoch so far.
	EpochLoss = "train/epoch_loss"
	// validPrefix is put before what Evaluate returns.
	validPrefix = "val/"
)

// A Logger keeps the numbers of a run; those of package peermesh/trainer/logger are
// files and a console. It is used on rank 0. The steps of a run that resumes may begin
// before those it has.
type Logger interface {
	Log(step int64, metrics map[string]float64) error
}

// A Run is what callbacks see of a training run.
type Run struct {
	rank, size int // rank -1: no world yet
	group      *ops.Group
	state      *trainer.State
	epochs     int64
	steps      int64
	perEpoch   int
	params     []*trainer.Param
	optimizer  trainer.Optimizer
	fast       bool

	callbacks []Callback
	loggers   []Logger
	logEvery  int64
	metrics   Metrics
	pending   Metrics // to be logged with this step

	began   time.Time
	taken   int64 // steps, in this process
	samples int64
	times   [phases]time.Duration

	stop    string // why this rank wants an end; empty: it does not
	stopped bool   // all ranks have agreed
	norm    func(ctx context.Context) (float64, error)
	unsound func(ctx context.Context) (name string, skips bool, err error)
	save    func(ctx context.Context, c *trainer.Checkpoints) error
}

// Rank is this process's place in the world of the moment, in [0, Size); -1 before the
// first.
func (r *Run) Rank() int { return r.rank }

// Size is the number of ranks of the world of the moment.
func (r *Run) Size() int { return r.size }

// Group is that of the world of the moment; nil before the first and after the last.
func (r *Run) Group() *ops.Group { return r.group }

// Progress is how far the run has come. In StepEnd the step counts already, in
// EpochEnd the epoch does not yet.
func (r *Run) Progress() trainer.Progress { return r.state.Progress }

// Limits are the numbers of epochs and steps that the run ends after; zero: any.
func (r *Run) Limits() (epochs, steps int64) { return r.epochs, r.steps }

// PerEpoch is the number of samples of an epoch, of all ranks: as the data has it, and with
// LimitTrain or Overfit, from EpochStart on, as they leave it.
func (r *Run) PerEpoch() int { return r.perEpoch }

// FastRun reports whether this is a test of the code, whose outcome means nothing.
func (r *Run) FastRun() bool { return r.fast }

// Params are the model's.
func (r *Run) Params() []*trainer.Param { return r.params }

// Optimizer is that of the run, from FitStart on. With ZeRO it has a share of the state.
func (r *Run) Optimizer() trainer.Optimizer { return r.optimizer }

// GradNorm is the norm of all gradients together, without the loss's scale, on the
// ranks of an UpdateStart. All ranks call it. With a Scaler it is not finite in a step that
// will be skipped.
func (r *Run) GradNorm(ctx context.Context) (float64, error) { return r.norm(ctx) }

// Metric is the newest value of a metric, alike on all ranks.
func (r *Run) Metric(name string) (value float64, ok bool) {
	value, ok = r.metrics[name]
	return value, ok
}

// Metrics are the newest of each, a copy.
func (r *Run) Metrics() Metrics { return maps.Clone(r.metrics) }

// Samples is how many samples all ranks together have trained on since this process
// began, and Elapsed how long that took.
func (r *Run) Samples() int64 { return r.samples }

// Elapsed is the time since the run began in this process.
func (r *Run) Elapsed() time.Duration { return time.Since(r.began) }

// Logging reports whether what is logged in this step is among every LogEvery-th. A
// callback that logs in each StepEnd asks it.
func (r *Run) Logging() bool { return r.state.Step%r.logEvery == 0 }

// Log gives the loggers a number of this step. On other ranks than 0 it does nothing.
func (r *Run) Log(name string, value float64) { r.pending[name] = value }

// Stop ends the run on all ranks after one and the same step: the one at hand, or where
// that is over, in StepEnd, the next. What is decided in a validation or at the end of
// an epoch counts there and then. Any rank may, and why is for [Run.Stopped].
func (r *Run) Stop(why string) {
	if r.stop == "" {
		r.stop = cmp.Or(why, "a callback has stopped the run")
	}
}

// Stopped says why the run has ended early: the words of this rank, or that another
// wanted it. It is empty if it has not.
func (r *Run) Stopped() string {
	if r.stopped && r.stop == "" {
		return "another rank has stopped the run"
	}
	if r.stopped {
		return r.stop
	}
	return ""
}

// Save keeps the state of the run as it is, in addition to Trainer.Checkpoints. All
// ranks call it, in StepEnd, ValidationEnd or EpochEnd.
func (r *Run) Save(ctx context.Context, c *trainer.Checkpoints) error { return r.save(ctx, c) }

// enter is a new world.
func (r *Run) enter(g *ops.Group) { r.group, r.rank, r.size = g, g.Rank(), g.Size() }

// flush gives the loggers what has been logged since the last time.
func (r *Run) flush() error {
	defer clear(r.pending)
	if r.rank != 0 || len(r.pending) == 0 {
		return nil
	}
	for _, l := range r.loggers {
		if err := l.Log(r.state.Step, r.pending); err != nil {
			return err
		}
	}
	return nil
}
