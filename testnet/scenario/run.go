package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"peermesh/mesh"
	"peermesh/ops"
	"peermesh/ops/tensor"
	"peermesh/testnet"
)

const (
	// wait is how long a node looks for its next world before it gives up.
	wait = time.Minute
	// limit bounds a whole run, in virtual time.
	limit = 2 * maxTime
	// maxHappenings bounds what a report tells.
	maxHappenings = 100_000
)

// errOver ends whatever still goes on when the run is over.
var errOver = errors.New("scenario: over")

// Run plays a scenario in virtual time of its own, on modelled links with real
// nodes, and reports. ctx can end it early, between two rounds. An error says that
// it could not be played: what goes wrong because of faults is in the report.
//
// It runs exactly, as testnet.Exact says: the same scenario gives the same report, but
// for what libp2p draws by lot, which is whom gossip tells in a world of more than
// seven, how it closes, and at times whether two that dial each other after a long
// silence do so twice.
func Run(ctx context.Context, s *Scenario) (r *Report, err error) {
	testnet.Exact(func() {
		testnet.Virtual(func() {
			r, err = Play(ctx.Err, s)
		})
	})
	return r, err
}

// Play is Run within a bubble that is there, where contexts from outside must not
// be waited for: stop says between rounds why to end early, unless it is nil.
func Play(stop func() error, s *Scenario) (*Report, error) {
	if stop == nil {
		stop = func() error { return nil }
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, errOver)
	defer cancel()
	p := &play{Scenario: s, stop: stop, report: newReport(s), nodes: make(map[peer.ID]int), began: make(map[int]bool)}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	defer p.cancel(errOver)
	net, err := testnet.Start(p.ctx, testnet.Config{
		Nodes: s.Nodes, Network: testnet.Model, Seed: s.Seed, Mesh: mesh.Config{Min: s.Min, Wait: wait},
	})
	if err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	p.net = net
	p.shape()
	p.run()
	p.report.Took = p.since()
	p.report.links(net.Links().Counts())
	return p.report, errors.Join(p.err, stop(), net.Close())
}

// A play is one run of a scenario.
type play struct {
	*Scenario
	stop   func() error
	net    *testnet.Net
	ctx    context.Context
	cancel context.CancelCauseFunc
	start  time.Time
	nodes  map[peer.ID]int // by identity
	wg     sync.WaitGroup

	mu     sync.Mutex // guards the rest
	report *Report
	began  map[int]bool // the rounds that have
	busy   int          // nodes that still play, and faults that will happen
	err    error
}

// shape gives the hosts and ways of the network what the scenario says.
func (p *play) shape() {
	for a := range p.Nodes {
		p.nodes[p.net.Node(a).ID()] = a
		p.net.Links().Shape(a, p.port(a))
		for b := range a {
			p.net.Links().SetLink(a, b, p.link(a, b))
		}
	}
}

func (p *play) since() time.Duration { return time.Since(p.start) }

// run lets all nodes and faults loose, and returns when every node that lives is
// done.
func (p *play) run() {
	p.start = time.Now()
	for i := range p.Nodes {
		p.let(i)
	}
	p.wg.Go(p.timed)
	p.wg.Wait()
}

// timed lets the faults happen that have a time: one after the other, so that those
// of one instant happen in the order of the plan.
func (p *play) timed() {
	plan := slices.DeleteFunc(slices.Clone(p.Faults), func(f Fault) bool { return f.Round > 0 })
	slices.SortStableFunc(plan, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	for _, f := range plan {
		select {
		case <-time.After(f.At - p.since()):
			p.inflict(f)
		case <-p.ctx.Done():
			return
		}
	}
}

// let makes a node play until it is done. The last one to be done ends the run.
func (p *play) let(i int) {
	p.mu.Lock()
	p.busy++
	p.mu.Unlock()
	p.wg.Go(func() {
		p.node(i)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.busy--; p.busy == 0 {
			p.cancel(errOver)
		}
	})
}

// node is one node's program: collectives in one world after the other.
func (p *play) node(i int) {
	m, finished := p.net.Mesh(i), 0
	for finished < p.Rounds {
		if err := p.stop(); err != nil {
			p.cancel(err)
			return
		}
		w, err := m.World(p.ctx)
		if err != nil {
			p.tell(i, "gives up: "+brief(err))
			return
		}
		p.tell(i, fmt.Sprintf("is rank %d of %d in world %d", w.Rank(), w.Size(), w.Epoch()))
		if err = p.world(i, w, &finished); err == nil {
			break
		}
		w.End(err)
		switch {
		case p.net.Dead(i):
			p.tell(i, "is dead")
			return
		case errors.Is(err, mesh.ErrGrow):
			p.tell(i, "ends its world, for others wait to be let in")
		default:
			p.tell(i, "loses its world: "+brief(err))
		}
	}
	p.tell(i, "is done")
}

// world runs the rounds that are left, from the first that no rank has finished.
func (p *play) world(i int, w *mesh.World, finished *int) error {
	g := ops.NewGroup(&counted{w, func(to int, n int64) { p.count(i, p.nodes[w.Peer(to)], n) }}, ops.Config{Links: p.prices(w)})
	agreed := []int64{int64(*finished)}
	if err := g.AllReduce(p.ctx, tensor.Of(agreed), tensor.Max).Wait(); err != nil {
		return err
	}
	*finished = int(agreed[0])
	x := make([]byte, p.Bytes)
	for *finished < p.Rounds {
		if p.Pause > 0 {
			time.Sleep(p.Pause)
		}
		if w.Rank() == 0 && len(p.net.Mesh(i).Waiting()) > 0 {
			w.End(mesh.ErrGrow)
		}
		round := *finished + 1
		p.begin(round)
		from := p.since()
		err := g.AllReduce(p.ctx, tensor.Of(x), tensor.Max).Wait()
		p.played(i, round, w.Epoch(), from, err)
		if err != nil {
			return err
		}
		*finished = round
	}
	return nil
}

// prices are the links between the ranks of a world, as the scenario has them.
func (p *play) prices(w *mesh.World) *links {
	l := &links{play: p, node: make([]int, w.Size())}
	for r := range l.node {
		l.node[r] = p.nodes[w.Peer(r)]
	}
	return l
}

// unbounded stands for a rate without bound, in bytes per second.
const unbounded = 1e12

type links struct {
	*play
	node []int // by rank
}

func (l *links) Latency(from, to int) time.Duration {
	link := l.link(l.node[from], l.node[to])
	return link.Latency + link.Jitter/2
}

func (l *links) Rate(from, to int) float64 {
	rate := unbounded
	for _, r := range []float64{l.port(l.node[from]).Up, l.port(l.node[to]).Down, l.link(l.node[from], l.node[to]).Rate} {
		if r > 0 {
			rate = math.Min(rate, r)
		}
	}
	return rate
}

// begin is called by every rank before a round: the first time, the faults of that
// round happen.
func (p *play) begin(round int) {
	p.mu.Lock()
	first := !p.began[round]
	p.began[round] = true
	p.mu.Unlock()
	if !first {
		return
	}
	for _, f := range p.Faults {
		if f.Round == round {
			p.inflict(f)
		}
	}
}

// inflict lets a fault happen.
func (p *play) inflict(f Fault) {
	n, a := p.net, f.Nodes[0]
	p.happen(a, f.what(), true)
	var err error
	switch f.Kind {
	case Kill:
		p.wg.Go(func() { p.failed(n.Kill(a)) }) // it waits for what it kills, which may be the caller
	case Restart:
		if !n.Dead(a) {
			break
		}
		p.mu.Lock()
		p.busy++ // the run is not over while it starts
		p.mu.Unlock()
		p.wg.Go(func() {
			if err := n.Restart(p.ctx, a); err != nil {
				p.failed(err)
			} else {
				p.let(a)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.busy--; p.busy == 0 {
				p.cancel(errOver)
			}
		})
	case Freeze:
		err = n.Freeze(a)
	case Thaw:
		err = n.Thaw(a)
	case Cut:
		err = n.Cut(a, f.Nodes[1])
	case Heal:
		err = n.Heal(a, f.Nodes[1])
	case Slow:
		err = n.Slow(a, f.Port)
	case Skew:
		n.Skew(a, f.Ahead)
	case Relink:
		err = n.SetLink(a, f.Nodes[1], f.Link)
	}
	p.failed(err)
}

// failed keeps what went wrong with the run itself.
func (p *play) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && p.ctx.Err() == nil {
		p.err = errors.Join(p.err, err)
	}
}

// A counted transport says how much it sends to whom.
type counted struct {
	*mesh.World
	count func(to int, n int64)
}
