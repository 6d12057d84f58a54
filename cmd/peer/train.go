package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"peermesh/mesh"
	"peermesh/ops"
	"peermesh/trainer"
	"peermesh/trainer/mnist"
)

// leavePatience bounds the good-bye: by then what was sent has arrived, or the
// others have learned that we are gone in a worse way.
const leavePatience = 5 * time.Second

// A trainCmd joins a mesh and trains.
type trainCmd struct {
	Training  `embed:""`
	Joining   `embed:""`
	Transport string `default:"all" enum:"tcp,quic,shm,all" help:"tcp, quic, shm (one machine) or all."`
	Min       int    `placeholder:"N" help:"Go on with this many ranks when others are lost, and let them or new ones in again, up to --world (all must be there)."`
	Quorum    string `default:"majority" enum:"majority,any" help:"Which of the ranks that are left may go on: majority, so that of two halves one waits, or any."`
}

// Validate finds what cannot be trained with. Kong calls it.
func (t *trainCmd) Validate() error {
	if err := errors.Join(t.Joining.Validate(), t.Training.Validate()); err != nil {
		return err
	}
	switch {
	case t.Mesh == "":
		return errors.New("--mesh is empty, want a name")
	case t.Min < 0 || t.Min > t.World:
		return fmt.Errorf("--min is %d, want 1 to --world, which is %d", t.Min, t.World)
	case t.Min > 0 && t.Net == netTutorial:
		return errors.New("--min is for --net convnet: the tutorial deals each rank its samples once and for all")
	}
	return nil
}

// Run joins, trains and leaves.
func (t *trainCmd) Run(p *process) error {
	t.abbreviated()
	s := &session{cmd: t, process: p, local: 1}
	s.columns, _ = terminal(p.stdout)
	if t.Launched {
		if err := s.tie(); err != nil {
			return err
		}
	} else if s.columns > 0 {
		out := new(console).writer(p.stdout, "", true)
		defer out.Close()
		s.process = &process{p.ctx, out, p.stderr}
	}
	setupLogging(&s.cmd.Common, s.cmd.Log)
	return s.run()
}

// A session is one peer's life, from its flags to its good-bye.
type session struct {
	cmd     *trainCmd
	process *process
	tether  *tether      // nil unless launched
	local   int          // ranks that share this machine's cores
	columns int          // of the terminal that shows the progress; zero: none
	logs    *logReporter // nil without --log-dir
	watch   *watching
	insight *insight
}

// tie takes the launcher's word for everything, and its end for ours.
func (s *session) tie() error {
	tether, b, err := tie(s.process)
	if err != nil {
		return err
	}
	if b.Train == nil {
		return usagef("--launched is for the children of another peer: this one is not told to train")
	}
	s.tether, s.cmd, s.local, s.columns = tether, b.Train, b.Local, b.Columns
	return nil
}

// run joins, trains and leaves; the data comes first, because it can be at fault.
func (s *session) run() (err error) {
	ctx := s.process.ctx
	s.insight = newInsight(s.cmd.Insight, s.cmd.Mesh, s.cmd.LogDir)
	defer s.insight.onSignals(s.process.stderr)()
	data, err := loadData(ctx, s.cmd.Data)
	if err != nil {
		return err
	}
	if s.watch, err = newWatching(s.cmd, s.insight.recorder); err != nil {
		return err
	}
	defer s.watch.close()
	device, err := s.cmd.Computing.open()
	if err != nil {
		return err
	}
	defer func() { err = released(device, err) }()
	s.crowd()
	e, t := s.entrant(), s.training(data)
	t.device = device
	e.terms = strings.Split(t.settings(), ", ")
	place, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer place.close()
	train := s.trainElastic
	if s.cmd.Net == netTutorial {
		train = s.trainOnce
	}
	err = train(ctx, place, t)
	s.insight.end(err)
	if err := s.logs.closeAfter(err); err != nil {
		return err
	}
	return place.leave(ctx)
}

// entrant is this peer before it has joined.
func (s *session) entrant() *entrant {
	return &entrant{Joining: &s.cmd.Joining, Common: &s.cmd.Common, transport: s.cmd.Transport, tether: s.tether,
		elastic: elasticMesh{s.cmd.Min, s.cmd.Quorum}, command: s.joinCommand, invite: func(ways []entrance, own []string) error {
			// There is no rank yet; JSON says 0, as the line is about this peer alone.
			return newReporter(s.cmd.Log, s.process.stdout, 0, s.cmd.World, 0).listening(ways, own)
		}}
}

// joinCommand is the command line for another peer, ready to paste.
func (s *session) joinCommand(addr string) string {
	args := []string{"peer", "--bootstrap", addr, "--world", strconv.Itoa(s.cmd.World)}
	if s.cmd.Min > 0 {
		args = append(args, "--min", strconv.Itoa(s.cmd.Min))
	}
	if s.cmd.Quorum == "any" {
		args = append(args, "--quorum", "any")
	}
	if s.cmd.Secret != "" {
		args = append(args, "--secret", s.cmd.Secret)
	}
	return commandLine(append(args, s.cmd.shared()...))
}

// trainOnce trains on one world, and ends with it. A signal ends the world first:
// the others then hear of an interrupted rank, not of what it led to.
func (s *session) trainOnce(parent context.Context, place *place, t *training) error {
	w, err := place.mesh.World(parent)
	if err != nil {
		return cause(parent, err)
	}
	defer context.AfterFunc(parent, func() { w.End(context.Cause(parent)) })()
	s.watch.enter(place, w)
	s.insight.enter(w)
	t.trace, t.peer = s.insight.timeline(), peerNames(w)
	t.group = ops.NewGroup(t.trace.transport(w), s.insight.observe(groupConfig))
	if err := t.reporter.world(describe(place, w, nil)); err != nil {
		return err
	}
	err = cause(parent, cause(w.Context(), t.run(w.Context())))
	if err != nil {
		w.End(err)
	}
	return identified(err, t.peer)
}

// trainElastic trains on one world after the other, or if nobody may be missing on
// one. What goes wrong on this rank, the others hear by the end of their world.
func (s *session) trainElastic(parent context.Context, place *place, t *training) (err error) {
	ws := &worlds{mesh: place.mesh, elastic: s.cmd.Min > 0, trace: s.insight.timeline()}
	ws.taken = func(w *mesh.World, why error) error {
		s.watch.enter(place, w)
		s.insight.enter(w)
		return t.reporter.world(describe(place, w, why))
	}
	e, err := newElastic(t, &s.cmd.Checkpointing)
	if err != nil {
		return err
	}
	s.insight.surround(e)
	s.watch.surround(e)
	ws.over = e.over
	e.present = func() func(int) string { return peerNames(ws.last) }
	e.Ended = func(cause error) {
		if !ws.elastic {
			return // it is the run's end, and the last line says so
		}
		s.insight.ended(cause)
		f := describe(place, ws.last, cause)
		if err := t.reporter.ended(f); err != nil {
			logger.Errorf("world %d has ended: %v (and that could not be written: %v)", f.epoch, cause, err)
		}
	}
	// A panic has ended the world for the others, and ends here in good order, so that
	// they have heard of it before this process is gone.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			logger.Errorf("%v\n%s", err, debug.Stack())
		}
	}()
	err = e.Run(parent, ws)
	switch {
	case e.fatal != nil:
		return e.fatal
	case errors.Is(err, trainer.ErrUnconfirmed):
		logger.Warnf("%v", err)
	case err != nil && !ws.elastic && ws.last != nil && ws.last.Context().Err() != nil:
		return cause(parent, context.Cause(ws.last.Context()))
	case err != nil:
		return identified(cause(parent, err), e.present())
	}
	return e.done(parent)
}

// training is a run that has no ranks yet.
func (s *session) training(data *mnist.Data) *training {
	c := s.cmd
	t := &training{plan: c.plan(c.World, s.local), data: data,
		reporter: newReporter(c.Log, s.process.stdout, 0, c.World, s.columns)}
	if text, ok := t.reporter.(*textReporter); ok {
		text.quiet = c.Quiet
	}
	if c.LogDir != "" {
		s.logs = &logReporter{reporter: t.reporter, dir: c.LogDir, rank: -1}
		t.reporter = s.logs
	}
	t.reporter = s.watch.reporter(t.reporter)
	var more []string
	if c.onGPU() {
		more = append(more, "--device "+deviceCUDA)
	}
	if c.Min > 0 {
		more = append(more, fmt.Sprintf("--min %d, --quorum %s", c.Min, c.Quorum))
	}
	if c.Checkpoint != "" {
		more = append(more, fmt.Sprintf("--checkpoint, --every %d, --resume %v", c.Every, c.Resume))
	}
	if c.Trace != "" {
		more = append(more, "--trace")
	}
	if c.Measure {
		more = append(more, "--measure")
	}
	t.more = strings.Join(more, ", ")
	return t
}

// peerNames gives a world's ranks their peer IDs.
func peerNames(w *mesh.World) func(rank int) string {
	return func(rank int) string { return w.Peer(rank).String() }
}

// describe says of a world what there is to know, and by what ways it is reached.
func describe(place *place, w *mesh.World, why error) worldFacts {
	f := worldFacts{epoch: w.Epoch(), rank: w.Rank(), size: w.Size(), peer: w.Peer(w.Rank()).String(), cause: why}
	for rank := range w.Size() {
		if rank != w.Rank() && place.node.Relayed(w.Peer(rank)) {
			f.relayed = append(f.relayed, rank)
		}
	}
	return f
}

// identified adds the peer ID of the rank that an error of a group is about: a
// rank is a number of this world only.
func identified(err error, peer func(rank int) string) error {
	rank := -1
	if aborted, ok := errors.AsType[*ops.AbortedError](err); ok {
		rank = aborted.Rank
	} else if mismatch, ok := errors.AsType[*ops.MismatchError](err); ok {
		rank = mismatch.Rank
	}
	if rank < 0 {
		return err
	}
	return fmt.Errorf("%w (rank %d is %s)", err, rank, peer(rank))
}

// cause prefers the reason why a context ended to the errors that its end led to.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
