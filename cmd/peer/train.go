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
	"peermesh/node"
	"peermesh/ops"
	"peermesh/trainer/mnist"
)

// leavePatience bounds the good-bye: by then what was sent has arrived, or the
// others have learned that we are gone in a worse way.
const leavePatience = 5 * time.Second

// A trainCmd joins a mesh and trains.
type trainCmd struct {
	Training  `embed:""`
	Listen    []string `sep:"none" placeholder:"ADDR" help:"Multiaddr to listen on; repeatable (every interface, any port)."`
	Bootstrap []string `sep:"none" placeholder:"ADDR" help:"Multiaddr of a peer to meet first, with its /p2p/ID; repeatable. The first peer of a world is given none."`
	World     int      `default:"1" placeholder:"N" help:"Ranks of the world; 1 trains alone."`
	Identity  string   `placeholder:"FILE" help:"Private key, made if absent (a fresh one that is not kept)."`
	Transport string   `default:"all" enum:"tcp,quic,all" help:"tcp, quic or all."`
	Launched  bool     `hidden:"" help:"This is a child of peer launch."`
}

// Validate finds what no mesh could be joined with. Kong calls it.
func (t *trainCmd) Validate() error {
	switch {
	case t.World < 1 || t.World > mesh.MaxWorld:
		return fmt.Errorf("--world is %d, want 1 to %d", t.World, mesh.MaxWorld)
	case t.World == 1 && len(t.Bootstrap) > 0:
		return errors.New("--bootstrap is given but --world is 1: say how many ranks the world has, as --world 4")
	case t.Mesh == "":
		return errors.New("--mesh is empty, want a name")
	}
	if err := checkAddresses(t.Bootstrap); err != nil {
		return err
	}
	return t.Training.Validate()
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
	setupLogging(&s.cmd.Training)
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
	s.tether, s.cmd, s.local, s.columns = tether, &b.Train, b.Local, b.Columns
	return nil
}

// run brings up the node; the data comes first, because it can be at fault. How
// node and mesh close at the end is not asked: whatever needed an orderly end
// had it in Leave.
func (s *session) run() error {
	ctx := s.process.ctx
	data, err := loadData(ctx, s.cmd.Data)
	if err != nil {
		return err
	}
	n, err := s.startNode(ctx)
	if err != nil {
		return err
	}
	defer n.Close()
	bootstrap, err := s.meet(ctx, n)
	if err != nil {
		return err
	}
	m, err := mesh.Join(ctx, n, mesh.Config{Name: s.cmd.Mesh, World: s.cmd.World, Bootstrap: bootstrap, Wait: s.cmd.Wait})
	if err != nil {
		return cause(ctx, usagef("%w", err)) // as with the node
	}
	defer m.Close()
	w, err := m.World(ctx)
	if err != nil {
		return cause(ctx, err)
	}
	if err := s.train(ctx, w, data); err != nil {
		w.End(err)
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	return m.Leave(ctx)
}

// startNode starts the node. A launched peer's key is its launcher's to choose
// and nobody's to keep.
func (s *session) startNode(ctx context.Context) (*node.Node, error) {
	// An address that nobody gave and nobody needs would only be an open port.
	c := node.Config{Identity: s.cmd.Identity, Listen: s.cmd.Listen, Transports: transports(s.cmd.Transport), Peers: s.cmd.World}
	if s.cmd.World == 1 && len(c.Listen) == 0 {
		c.Listen = loopback(s.cmd.Transport) // nobody is expected
	}
	n, err := node.Start(ctx, c)
	if err != nil {
		// What a node can be told wrong it was told by a flag: a key, an address.
		return nil, cause(ctx, usagef("%w", err))
	}
	if s.tether != nil {
		if err := forget(s.cmd.Identity); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	return n, nil
}

// meet finds the bootstrap addresses: the launcher's, or those of the flags.
// The first peer of a world is told none; it tells the others its own.
func (s *session) meet(ctx context.Context, n *node.Node) ([]string, error) {
	var own []string
	for _, a := range n.Addrs() {
		own = append(own, a.String())
	}
	if s.tether != nil {
		return s.tether.meet(ctx, own)
	}
	if s.cmd.World > 1 && len(s.cmd.Bootstrap) == 0 {
		ways := entrances(n.Addrs(), defaultRoute())
		for i := range ways {
			ways[i].command = s.joinCommand(ways[i].addr)
		}
		// There is no rank yet; JSON says 0, as the line is about this peer alone.
		r := newReporter(s.cmd.Log, s.process.stdout, 0, s.cmd.World, 0)
		return nil, r.listening(ways, own)
	}
	return s.cmd.Bootstrap, nil
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
