package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"peermesh/mesh"
	"peermesh/ops"
	"peermesh/trainer/mnist"
)

// leavePatience bounds the good-bye: by then what was sent has arrived, or the
// others have learned that we are gone in a worse way.
const leavePatience = 5 * time.Second

// A trainCmd joins a mesh and trains.
type trainCmd struct {
	Training  `embed:""`
	Joining   `embed:""`
	Transport string `default:"all" enum:"tcp,quic,all" help:"tcp, quic or all."`
}

// Validate finds what cannot be trained with. Kong calls it.
func (t *trainCmd) Validate() error {
	if t.Mesh == "" {
		return errors.New("--mesh is empty, want a name")
	}
	return errors.Join(t.Joining.Validate(), t.Training.Validate())
}

// Run joins, trains and leaves.
func (t *trainCmd) Run(p *process) error {
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
	tether  *tether // nil unless launched
	local   int     // ranks that share this machine's cores
	columns int     // of the terminal that shows the progress; zero: none
}

// tie takes the launcher's word for everything, and its end for ours.
func (s *session) tie() error {
	tether, b, err := openTether(func() {
		fmt.Fprintln(s.process.stderr, oneLine(errLauncherGone))
		os.Exit(statusFailed)
	})
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
func (s *session) run() error {
	ctx := s.process.ctx
	data, err := loadData(ctx, s.cmd.Data)
	if err != nil {
		return err
	}
	place, err := s.entrant().enter(ctx)
	if err != nil {
		return err
	}
	defer place.close()
	w, err := place.mesh.World(ctx)
	if err != nil {
		return cause(ctx, err)
	}
	if err := s.train(ctx, w, data); err != nil {
		w.End(err)
		return err
	}
	return place.leave(ctx)
}

// entrant is this peer before it has joined.
func (s *session) entrant() *entrant {
	return &entrant{Joining: &s.cmd.Joining, Common: &s.cmd.Common, transport: s.cmd.Transport, tether: s.tether,
		invite: func(ways []entrance, own []string) error {
			for i := range ways {
				ways[i].command = s.joinCommand(ways[i].addr)
			}
			// There is no rank yet; JSON says 0, as the line is about this peer alone.
			return newReporter(s.cmd.Log, s.process.stdout, 0, s.cmd.World, 0).listening(ways, own)
		}}
}

// joinCommand is the command line for another peer, ready to paste.
func (s *session) joinCommand(addr string) string {
	args := append([]string{"peer", "--bootstrap", addr, "--world", strconv.Itoa(s.cmd.World)}, s.cmd.shared()...)
	for i := range args {
		args[i] = quoted(args[i])
	}
	return strings.Join(args, " ")
}

// train trains on one world, and ends with it. A signal ends the world first:
// the others then hear of an interrupted rank, not of what it led to.
func (s *session) train(parent context.Context, w *mesh.World, data *mnist.Data) error {
	defer context.AfterFunc(parent, func() { w.End(context.Cause(parent)) })()
	t := &training{
		plan:     s.cmd.plan(w.Size(), s.local),
		group:    ops.NewGroup(w, groupConfig),
		data:     data,
		peer:     func(rank int) string { return w.Peer(rank).String() },
		reporter: newReporter(s.cmd.Log, s.process.stdout, w.Rank(), w.Size(), s.columns),
	}
	err := cause(parent, cause(w.Context(), t.run(w.Context())))
	return identified(err, t.peer)
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
