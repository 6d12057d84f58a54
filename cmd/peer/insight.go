package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"peermesh/mesh"
	"peermesh/ops"
	"peermesh/ops/flight"
	"peermesh/trainer"
)

// Insight is what a run keeps of itself, for whoever wants to know what it did.
type Insight struct {
	Flight string `placeholder:"DIR" help:"Keep each rank's last operations here when the run ends, however, for peer diagnose (with --log-dir, and if it fails: its folder flight)."`
	Trace  string `placeholder:"FILE" help:"Rank 0 writes a timeline of all ranks' last operations here, which ui.perfetto.dev shows."`
}

// flightFolder is where the record of a run that fails goes within its --log-dir.
const flightFolder = "flight"

// tailLines is how many operations are shown on a terminal that have no folder to go to.
const tailLines = 16

// An insight is what one rank keeps. All that it has can do without it: it may be nil.
type insight struct {
	recorder *flight.Recorder
	trace    *timeline // nil: none
	name     string    // of the mesh
	dir      string    // of the record; empty: none
	always   bool      // the record is kept of a run that ends well, too
}

// newInsight makes what the flags ask for. Operations are recorded in any case: it costs
// little, and SIGQUIT shows the last of them.
func newInsight(f Insight, name, logs string) *insight {
	i := &insight{name: name, dir: f.Flight, always: f.Flight != ""}
	if f.Trace != "" {
		i.trace = newTimeline(f.Trace)
		i.recorder = i.trace.Recorder
	} else {
		i.recorder = flight.New(0)
	}
	if f.Flight == "" && logs != "" {
		i.dir = filepath.Join(logs, flightFolder)
	}
	return i
}

// observe has a group's operations noted.
func (i *insight) observe(c ops.Config) ops.Config {
	if i == nil {
		return c
	}
	c.Observer = i.recorder
	return c
}

// enter says that operations are from now on in this world.
func (i *insight) enter(w *mesh.World) {
	if i == nil {
		return
	}
	peers := make([]string, w.Size())
	for rank := range peers {
		peers[rank] = w.Peer(rank).String()
	}
	i.recorder.Enter(flight.World{Name: i.name, Epoch: w.Epoch(), Rank: w.Rank(), Size: w.Size(), Peers: peers})
	if i.trace != nil {
		i.trace.enter(w.Rank())
	}
}

// end keeps what there is to keep of a run that has ended, or of a world. What cannot be
// written is logged: the run's own error goes first.
func (i *insight) end(err error) {
	if i == nil {
		return
	}
	if i.trace != nil {
		if err := i.trace.salvage(); err != nil {
			logger.Errorf("no trace: %v", err)
		}
	}
	if i.dir == "" || err == nil && !i.always {
		return
	}
	i.keep(err)
}

// ended keeps the record of a world that has ended, with which the run goes on.
func (i *insight) ended(cause error) {
	if i != nil && i.dir != "" {
		i.keep(cause)
	}
}

// timeline is what is drawn; nil: nothing.
func (i *insight) timeline() *timeline {
	if i == nil {
		return nil
	}
	return i.trace
}

// keep writes the record to its folder.
func (i *insight) keep(err error) {
	path, failed := i.recorder.WriteFile(i.dir, reasonOf(err))
	switch {
	case failed != nil:
		logger.Errorf("no flight record: %v (make room there, or name another folder with --flight)", failed)
	case err != nil:
		logger.Infof("the last operations are in %s: peer diagnose %s says what they come to", path, i.dir)
	}
}

// reasonOf is an error as a record has it.
func reasonOf(err error) flight.Reason {
	why := flight.Reason{Lost: -1}
	if err != nil {
		why.Text = err.Error()
		why.Lost, _ = fault(err)
	}
	return why
}

// show keeps the record as it stands, or if it has no folder writes its end.
func (i *insight) show(w io.Writer) {
	if i.dir != "" {
		i.keep(nil)
		return
	}
	l := i.recorder.Log(flight.Reason{Lost: -1})
	fmt.Fprintf(w, "peer: rank %d of %d, the last operations (--flight DIR keeps more of them):\n", l.World.Rank, l.World.Size)
	for _, r := range l.Records[max(0, len(l.Records)-tailLines):] {
		fmt.Fprintln(w, " ", r.Call, r.State, r.Error)
	}
}

// surround notes what an elastic run does: it is the run's own functions that are noted.
// Clocks are compared after the run's own beginning, which finds ranks that were not
// started alike.
func (i *insight) surround(e *elastic) {
	if e.Group = i.observe(e.Group); i == nil || i.trace == nil {
		return
	}
	e.trace = i.trace
	e.recipe.observe(i.trace)
	t, begin, compute, update, step, epoch := i.trace, e.Begin, e.Compute, e.Update, e.AfterStep, e.EpochEnd
	e.Begin = func(ctx context.Context, g *ops.Group) error {
		if err := t.during("steps", "begin", func() error { return begin(ctx, g) }); err != nil {
			return err
		}
		return t.compare(ctx, g)
	}
	e.Compute = func(ctx context.Context, s trainer.Share) error {
		return t.during("steps", fmt.Sprintf("step %d", s.Step+1), func() error { return compute(ctx, s) })
	}
	e.Update = func() error { return t.during("steps", "update", update) }
	last := func(f func(context.Context, *ops.Group) error) func(context.Context, *ops.Group) error {
		return func(ctx context.Context, g *ops.Group) error {
			if err := f(ctx, g); err != nil || e.accuracy == nil {
				return err
			}
			return t.gather(ctx, g)
		}
	}
	e.AfterStep, e.EpochEnd = last(step), last(epoch)
}
