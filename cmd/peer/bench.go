package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"peermesh/mesh"
	"peermesh/ops"
)

// Bounds of what a benchmark is asked for.
const (
	maxBenchLanes = ops.MaxLanes
	maxIters      = 1 << 20
	maxBudget     = 3600 // seconds
	maxInProcess  = 64   // ranks of one process
)

// A benchCmd measures operations among local processes, or among the peers of a
// mesh. Its texts are parsed by plan, in whichever process they end up.
type benchCmd struct {
	Common    `embed:""`
	Joining   `embed:""`
	Insight   `embed:""`
	Num       int     `name:"num-processes" short:"n" placeholder:"N" help:"Local ranks (2, unless --world says that the ranks are the peers of a mesh)."`
	Op        string  `default:"all_reduce" placeholder:"OPS" help:"Operations, as all_reduce,broadcast; or all. (${benchops})"`
	Sizes     string  `default:"8,1KiB,16KiB,256KiB,1MiB,16MiB,64MiB" placeholder:"SIZES" help:"Bytes of the whole buffer, as 8,64KiB or 1KiB..1MiB (doubling) or 1KiB..1MiB*4."`
	DTypes    string  `name:"dtypes" default:"float32" placeholder:"TYPES" help:"Element types, as float32,bfloat16."`
	Iters     int     `placeholder:"N" help:"Timed runs of each (as many as the budget allows, 5 to 3000)."`
	Warmup    *int    `placeholder:"N" help:"Runs before those (a tenth, at most 100)."`
	Budget    float64 `default:"0.4" placeholder:"SECONDS" help:"Time for each operation, size and type, in seconds."`
	Transport string  `default:"all" enum:"all,tcp,quic,shm,memory" help:"all (what the peers find best), tcp, quic, shm (one machine), or memory (all ranks in one process)."`
	Algo      string  `placeholder:"NAME" help:"Algorithm, as ring or all_reduce=halving,broadcast=tree (the cheapest by price)."`
	Lanes     int     `placeholder:"N" help:"Lanes of a collective (by size)."`
	Measure   bool    `help:"Measure the links first, and price the algorithms by what was found."`
	JSON      bool    `name:"json" help:"Print one JSON object for each operation, size and type."`
	Against   string  `placeholder:"FILE" help:"Compare with what an earlier --json printed."`
}

// Validate finds what cannot be measured. Kong calls it.
func (b *benchCmd) Validate() error {
	switch {
	case b.Num < 0 || b.Num > maxLocal:
		return fmt.Errorf("--num-processes is %d, want 1 to %d", b.Num, maxLocal)
	case b.Num > 0 && (b.World > 1 || len(b.Bootstrap) > 0):
		return errors.New("--num-processes starts local ranks, --world and --bootstrap join a mesh: give one or the other")
	case b.Transport == "memory" && (b.World > 1 || b.Num > maxInProcess):
		return fmt.Errorf("--transport memory has all ranks in one process: give --num-processes, up to %d", maxInProcess)
	case b.Iters < 0 || b.Iters > maxIters:
		return fmt.Errorf("--iters is %d, want 1 to %d", b.Iters, maxIters)
	case b.Warmup != nil && (*b.Warmup < 0 || *b.Warmup > maxIters):
		return fmt.Errorf("--warmup is %d, want 0 to %d", *b.Warmup, maxIters)
	case !(b.Budget > 0 && b.Budget <= maxBudget): // so put, a NaN fails too
		return fmt.Errorf("--budget is %v, want a number of seconds up to %d", b.Budget, maxBudget)
	case b.Lanes < 0 || b.Lanes > maxBenchLanes:
		return fmt.Errorf("--lanes is %d, want 1 to %d", b.Lanes, maxBenchLanes)
	}
	if _, err := b.plan(); err != nil {
		return err
	}
	return errors.Join(b.Common.Validate(), b.Joining.Validate())
}

// Run measures on the ranks that the flags ask for.
func (b *benchCmd) Run(p *process) error {
	if b.LogLevel == "info" {
		b.LogLevel = "warn" // the table says what a world's lines would, without them in between
	}
	setupLogging(&b.Common, "text")
	if _, err := readBaseline(b.Against); err != nil { // before anything is started
		return err
	}
	columns, _ := terminal(p.stdout)
	switch {
	case b.Launched:
		return b.child(p)
	case b.World > 1:
		return b.join(p.ctx, p, "peers of a mesh", b.entrant(p, nil))
	case b.Num == 0:
		b.Num = 2
	}
	b.World = b.Num
	if b.Transport == "memory" {
		return b.inProcess(p)
	}
	return launchRanks(p, "bench", b.Num, true, func(_ int, key string) *brief {
		child := *b
		child.Identity, child.Listen = key, loopback(b.Transport)
		return &brief{Bench: &child, Columns: columns}
	})
}

// child is one rank of a launch, told everything by its launcher.
func (b *benchCmd) child(p *process) error {
	tether, brief, err := tie(p)
	if err != nil {
		return err
	}
	if brief.Bench == nil {
		return usagef("--launched is for the children of another peer: this one is not told to measure")
	}
	*b = *brief.Bench
	setupLogging(&b.Common, "text")
	confine(brief.Local, b.World, 1)
	return b.join(p.ctx, p, "processes of one machine", b.entrant(p, tether))
}

// inProcess has every rank in this process, each with a node of its own.
func (b *benchCmd) inProcess(p *process) error {
	ctx, cancel := context.WithCancelCause(p.ctx)
	defer cancel(nil)
	errs := make([]error, b.Num)
	met := make(chan []string, b.Num)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			joining := b.Joining
			e := b.entrant(p, nil)
			e.Joining = &joining
			e.invite = func(_ []entrance, own []string) error {
				for range b.Num {
					met <- own
				}
				return nil
			}
			if i > 0 {
				select {
				case joining.Bootstrap = <-met:
				case <-ctx.Done():
					return
				}
			}
			if errs[i] = b.join(ctx, p, "ranks of one process", e); errs[i] != nil {
				cancel(errs[i])
			}
		})
	}
	all.Wait()
	return cause(ctx, errors.Join(errs...))
}

// entrant is a rank before it has joined.
func (b *benchCmd) entrant(p *process, t *tether) *entrant {
	return &entrant{Joining: &b.Joining, Common: &b.Common, transport: b.Transport, tether: t, command: b.joinCommand,
		invite: func(ways []entrance, _ []string) error {
			// Stdout is for results alone.
			return (&textReporter{w: p.stderr}).listening(ways, nil)
		}}
}

// joinCommand is the command line for another peer: everything that all must have
// alike.
func (b *benchCmd) joinCommand(addr string) string {
	args := []string{"peer", "bench", "--bootstrap", addr, "--world", fmt.Sprint(b.World), "--op", b.Op, "--sizes", b.Sizes, "--dtypes", b.DTypes,
		"--budget", fmt.Sprint(b.Budget), "--iters", fmt.Sprint(b.Iters)}
	add := func(given bool, flag string, value any) {
		if given {
			args = append(args, flag, fmt.Sprint(value))
		}
	}
	add(b.Mesh != defaultMesh, "--mesh", b.Mesh)
	add(b.Secret != "", "--secret", b.Secret)
	add(b.Transport != "all", "--transport", b.Transport)
	add(b.Algo != "", "--algo", b.Algo)
	add(b.Trace != "", "--trace", b.Trace)
	add(b.Lanes != 0, "--lanes", b.Lanes)
	addPointer(add, "--warmup", b.Warmup)
	if b.Measure {
		args = append(args, "--measure")
	}
	return commandLine(args)
}

// join takes a rank's place in the mesh, measures and leaves.
func (b *benchCmd) join(ctx context.Context, p *process, where string, e *entrant) error {
	place, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer place.close()
	w, err := place.mesh.World(ctx)
	if err != nil {
		return cause(ctx, err)
	}
	if err := b.on(ctx, p, where, w); err != nil {
		w.End(err)
		return err
	}
	return place.leave(ctx)
}

// on measures on a world, and reports on its rank 0.
func (b *benchCmd) on(parent context.Context, p *process, where string, w *mesh.World) error {
	defer context.AfterFunc(parent, func() { w.End(context.Cause(parent)) })()
	plan, err := b.plan()
	if err != nil {
		return err
	}
	report := discard
	if w.Rank() == 0 {
		before, err := readBaseline(b.Against)
		if err != nil {
			return err
		}
		report = newBenchReporter(p.stdout, b.JSON, before, facts{
			world: w.Size(), where: where, transport: b.Transport, algo: b.Algo, lanes: b.Lanes, machine: thisMachine()})
	}
	seen := newInsight(b.Insight, b.Mesh, "")
	seen.enter(w)
	run := &bench{plan: plan, report: report, peer: peerNames(w), trace: seen.timeline()}
	run.group = ops.NewGroup(run.trace.transport(w), seen.observe(ops.Config{Algorithm: b.Algo, Lanes: b.Lanes}))
	err = run.run(w.Context())
	seen.end(cause(parent, cause(w.Context(), err)))
	return identified(cause(parent, cause(w.Context(), err)), run.peer)
}
