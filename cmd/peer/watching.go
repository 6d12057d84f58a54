package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"peermesh/mesh"
	"peermesh/ops"
	"peermesh/ops/flight"

	"peermesh/cmd/peer/internal/watch"
)

// Watching is how a run is looked at while it goes on.
type Watching struct {
	HTTP  string `name:"http" placeholder:"ADDR" help:"Serve a page about the run here, as :8080, and /metrics for Prometheus; on loopback unless the address names a host. With launch, rank 0 does."`
	Pprof bool   `help:"Serve Go's profiles with the page, at /debug/pprof."`
	Quiet bool   `short:"q" help:"Print the result and what goes wrong, and nothing on the way there."`
	JSON  bool   `name:"json" help:"Short for --log json."`
}

// validate finds what cannot be served.
func (w *Watching) validate() error {
	if w.HTTP == "" {
		if w.Pprof {
			return errors.New("--pprof is given without --http, where the profiles are served")
		}
		return nil
	}
	if _, err := watch.Address(w.HTTP); err != nil {
		return fmt.Errorf("--http: %w", err)
	}
	return nil
}

// abbreviated spells short flags out.
func (t *Training) abbreviated() {
	if t.JSON {
		t.Log = "json"
	}
}

// A watching is what one rank shows of its run, to browsers and in its progress, and
// tells other ranks that show theirs.
type watching struct {
	board  *watch.Board
	server *watch.Server // nil without --http
}

// newWatching opens the page, if there is to be one: before the peer joins, so that it
// shows who is waited for. A rank without a page reports to those that have one.
func newWatching(c *trainCmd, r *flight.Recorder) (*watching, error) {
	w := &watching{board: watch.New(watch.Config{Title: c.Net, Wanted: c.World, Recorder: r})}
	if c.HTTP == "" {
		return w, nil
	}
	var err error
	w.server, err = watch.Listen(w.board, watch.Options{Addr: c.HTTP, Pprof: c.Pprof})
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, usagef("--http %s: another program listens there: choose another port, or :0 for any that is free", c.HTTP)
	case err != nil:
		return nil, usagef("--http %s: %w", c.HTTP, err)
	}
	logger.Infof("the page about this run is at %s", w.server.URL())
	return w, nil
}

// close ends the page. That the run has ended it has shown by then, if someone looked.
func (w *watching) close() {
	if w.server == nil {
		return
	}
	if err := w.server.Close(); err != nil {
		logger.Errorf("closing the page: %v", err)
	}
}

// enter says that operations are in this world from now on. What its links can carry is
// what all ranks have agreed on, which the first collective would wait for as well.
func (w *watching) enter(p *place, now *mesh.World) {
	at := watch.Place{World: now, Peer: peerNames(now), Relayed: func(rank int) bool {
		return rank != now.Rank() && p.node.Relayed(now.Peer(rank))
	}}
	w.board.Enter(at)
	if links, err := now.Survey(now.Context()); err == nil { // or else the world has ended
		w.board.Measured(func(from, to int) float64 { return carries(links, from, to) })
	}
}

// carries is the rate of a link, in bytes a second; 0 where both ends are on one host, of
// which a survey has only a nominal one.
func carries(l mesh.Links, from, to int) float64 {
	if l.Host(from) == l.Host(to) {
		return 0
	}
	return l.Rate(from, to)
}

// surround has shown what an elastic run's links were measured to carry.
func (w *watching) surround(e *elastic) {
	begin := e.Begin
	e.Begin = func(ctx context.Context, g *ops.Group) error {
		if err := begin(ctx, g); err != nil {
			return err
		}
		if e.measure {
			w.board.Measured(g.Links().Rate)
		}
		return nil
	}
}

// reporter passes all on to another, and shows it. A nil watching shows nothing.
func (w *watching) reporter(r reporter) reporter {
	if w == nil {
		return r
	}
	return &watchReporter{reporter: r, board: w.board}
}

// A watchReporter shows what it passes on.
type watchReporter struct {
	reporter
	board   *watch.Board
	samples int // of the epoch, by the last step
	epochs  int // the epoch of the last step
}

func (r *watchReporter) started(s startFacts) error {
	r.board.Began(s.net, s.epochs, s.steps)
	return r.reporter.started(s)
}

func (r *watchReporter) ended(f worldFacts) error {
	lost, _ := fault(f.cause)
	r.board.Exit(errors.New(reason(f.cause)), lost)
	return r.reporter.ended(f)
}

// step adds what goes over the links, which the training does not know.
func (r *watchReporter) step(s stepFacts) error {
	if s.epoch != r.epochs || s.samples < r.samples {
		r.epochs, r.samples = s.epoch, 0
	}
	r.board.Step(s.epoch, s.taken, s.samples-r.samples, s.loss)
	r.samples = s.samples
	s.bytes = r.board.BytesPerSecond()
	return r.reporter.step(s)
}

func (r *watchReporter) epoch(e epochFacts) error {
	r.board.Epoch(e.epoch, e.steps, e.loss)
	return r.reporter.epoch(e)
}

func (r *watchReporter) done(e epochFacts, accuracy float64) error {
	r.board.Tested(e.steps, accuracy)
	r.board.Done()
	return r.reporter.done(e, accuracy)
}
