package mesh

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"peermesh/node"
)

const (
	// linkTimeout bounds the linking of a world's members to each other.
	linkTimeout = 5 * time.Second
	// linkPatience is how long the higher rank waits before it opens the stream that
	// the lower one should: it may have no way to, or not be in the world at all.
	linkPatience = 500 * time.Millisecond
	// partTimeout bounds how long a rank whose world has ended waits to hear that
	// the others know.
	partTimeout = 700 * time.Millisecond
	// dismissTimeout bounds how long a rank that seems to hear nothing any more has
	// to hear of the end.
	dismissTimeout = 200 * time.Millisecond
	// protection is the tag that keeps members' connections from being trimmed.
	protection = "peermesh-world"
)

// A World is one epoch: who takes part, and in which rank. It never changes; it
// ends, for one cause that every rank learns.
type World struct {
	node    *node.Node
	roster  roster
	rank    int
	silence time.Duration   // zero: as the links suggest
	beat    time.Duration   // between heartbeats
	members []*announcement // by rank
	near    []*link         // to the neighbours, in the order of routes' steps
	routes  routes          // of news
	start   time.Time
	pace    *pace        // of the mesh
	stolen  atomic.Int64 // nanoseconds by which watch's ticks have come late, all together

	// stand notes that the world stands here, and signs it; stood, that it does
	// everywhere; carried, that this peer has been given what the others had; advanced,
	// that all have got on since.
	stand    func() ([]byte, error)
	stood    func(stands [][]byte)
	carried  func()
	advanced func()
	holds    bool // what the world goes on from; the mesh's lock guards it

	ctx    context.Context // ends with the world
	cancel context.CancelCauseFunc
	ending sync.Once
	whole  chan struct{} // closed when all ranks are in
	linked chan struct{} // closed when the world stands here; never if it ends before

	// wires outlives ctx for as long as the end needs to reach the others.
	wires  context.Context
	unwire context.CancelCauseFunc
	tasks  tasks
	done   chan struct{} // closed when nothing of the world is left

	linking sync.Mutex // guards these
	links   []*link    // by rank; nil for our own, and for those that have not been needed yet
	last    []byte     // the end, for links to come
	running bool       // links' connections are not to be trimmed

	mu       sync.Mutex // guards the rest
	present  []bool     // by rank: it has committed the world
	missing  int        // how many have not, as far as we know
	sigs     [][]byte   // by rank: its signature that the world stands there
	unsure   int        // how many we have none of
	survey   survey
	left     bool // Leave was called
	handlers map[uint32]func(from int, p []byte)
	out      map[laneKey]*outLane
	in       map[laneKey]*inLane

	lanesTo, lanesFrom []int // by rank, of out and in
}

// laneKey names one direction of a lane.
type laneKey struct {
	rank int
	lane uint64
}

func newWorld(n *node.Node, c Config, p *proposal, self peer.ID) *World {
	w := &World{
		node: n, roster: p.roster, rank: p.roster.rank(self), silence: c.Silence, beat: beatEvery,
		members: p.members, links: make([]*link, len(p.members)),
		start: time.Now(), whole: make(chan struct{}), linked: make(chan struct{}), done: make(chan struct{}),
		handlers: make(map[uint32]func(int, []byte)),
		out:      make(map[laneKey]*outLane), in: make(map[laneKey]*inLane),
		lanesTo: make([]int, len(p.members)), lanesFrom: make([]int, len(p.members)),
	}
	w.ctx, w.cancel = context.WithCancelCause(context.Background())
	w.wires, w.unwire = context.WithCancelCause(context.Background())
	w.routes = newRoutes(w.Size())
	for _, step := range w.routes.steps {
		w.near = append(w.near, w.to((w.rank+step)%w.Size()))
	}
	if w.sparse() {
		w.beat = beatSparse
	}
	if w.silence > 0 {
		w.beat = min(w.beat, w.silence/8)
	}
	w.present, w.missing = make([]bool, w.Size()), w.Size()
	w.sigs, w.unsure = make([][]byte, w.Size()), w.Size()
	w.survey = survey{rows: make([][]reading, w.Size()), rates: make(map[int]ratios), done: make(chan struct{})}
	return w
}

// Epoch counts the worlds of a mesh, from 1.
func (w *World) Epoch() uint64 { return w.roster.Epoch }

// Rank is this peer's place in the world, in [0, Size).
func (w *World) Rank() int { return w.rank }

// Size is the number of ranks.
func (w *World) Size() int { return len(w.roster.Members) }

// Peer is the peer that has a rank.
func (w *World) Peer(rank int) peer.ID { return w.roster.Members[rank] }

// Context ends when the world does. Its cause is an *EndedError, or ErrClosed
// after this peer has left.
func (w *World) Context() context.Context { return w.ctx }

// Carried says that this rank has all that was done before this world, as those that had
// it have given it: see Config.Carries.
func (w *World) Carried() { w.carried() }

// Advanced says that all ranks have done more in this world than was done before it: see
// Config.Carries. Only the first time counts.
func (w *World) Advanced() { w.advanced() }

// Done is closed when nothing of the world is left on this rank: it has ended, and the
// others have said that they know why, or have had the better part of a second to. A
// process that is about to exit after an End waits for this, or closes the mesh, which
// does; or the others see nothing but a connection that is lost.
func (w *World) Done() <-chan struct{} { return w.done }

// End ends the world on every rank, for a cause that all of them learn, as an
// *EndedError with this rank. Only the first end counts. It does not wait until they have:
// see Done.
func (w *World) End(cause error) {
	if cause == nil {
		cause = errors.New("ended without a cause")
	}
	w.fault(w.rank, cause)
}

// fault ends the world because of a rank, on our own knowledge or another's.
func (w *World) fault(rank int, cause error) {
	w.end(&EndedError{Epoch: w.roster.Epoch, Rank: rank, Peer: w.Peer(rank), Err: cause})
}

func (w *World) end(e *EndedError) {
	w.ending.Do(func() {
		w.cancel(e)
		w.linking.Lock()
		w.last = endFrame(e)
		for _, l := range w.links {
			if l != nil {
				l.urgent <- w.last // never blocks: see newLink
			}
		}
		w.linking.Unlock()
		log.Infow("world ended", "err", e)
	})
}

// cut ends the world on this rank alone, whose node was closed beneath it: there
// is no way left to tell the others, who will notice.
func (w *World) cut() {
	w.ending.Do(func() {
		w.cancel(&EndedError{Epoch: w.roster.Epoch, Rank: w.rank, Peer: w.Peer(w.rank), Err: ErrClosed})
	})
}

// stands reports whether the world is linked up and goes on.
func (w *World) stands() bool {
	return isClosed(w.linked) && w.ctx.Err() == nil
}

// finished reports whether the world has ended and nothing of it is left.
func (w *World) finished() bool { return isClosed(w.done) }

// run is the life of a world.
func (w *World) run() {
	defer close(w.done)
	w.protect(true)
	defer w.protect(false)
	w.tasks.start(w.watch)
	if w.link() {
		row := w.readings()
		sig, err := w.stand()
		if err == nil {
			close(w.linked)
			w.note(w.rank, sig, row)
		} else {
			w.fault(w.rank, err)
		}
	}
	<-w.ctx.Done()
	if errors.As(context.Cause(w.ctx), new(*EndedError)) {
		w.part()
	}
	w.unwire(node.ErrClosed)
	w.tasks.wait()
}

// link opens the control streams to the neighbours, and waits until all ranks are
// in. It reports whether they are.
func (w *World) link() bool {
	begin := w.clock()
	ctx, cancel := w.within(w.pace.patient(linkTimeout))
	defer cancel()
	if err := w.arrived(int64(w.rank)); err != nil {
		w.fault(w.rank, err)
	}
	for _, l := range w.near {
		w.tasks.start(func() { w.reach(ctx, l) })
	}
	for _, l := range w.near {
		select {
		case <-l.attached:
		case <-w.ctx.Done():
			return false
		case <-ctx.Done():
			w.fault(l.rank, fmt.Errorf("%w in %.1fs", ErrAbsent, (w.clock()-begin).Seconds()))
			return false
		}
	}
	for _, l := range w.near {
		if l.rank > w.rank {
			w.tasks.start(func() { w.sound(l) })
		}
	}
	select {
	case <-w.whole:
		return w.ctx.Err() == nil
	case <-w.ctx.Done():
	case <-ctx.Done():
		if r := w.absent(); r >= 0 {
			w.fault(r, fmt.Errorf("%w in %.1fs", ErrAbsent, (w.clock()-begin).Seconds()))
		}
	}
	return false
}

// reach opens the control stream to a neighbour: at once to a higher rank, and to
// a lower one if that has not.
func (w *World) reach(ctx context.Context, l *link) {
	if l.rank < w.rank {
		timer := time.NewTimer(crowd(linkPatience, w.Size()))
		defer timer.Stop()
		select {
		case <-l.attached:
			return
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
	if err := l.open(ctx); err != nil && ctx.Err() == nil && !l.isAttached() {
		w.fault(l.rank, fmt.Errorf("%w: %w", ErrAbsent, err))
	}
}

// part waits until every other rank knows of the end. Without that, the first to
// go would look like the culprit to those that have not heard, and a connection
// that closes loses what was written last.
func (w *World) part() {
	timeout := time.NewTimer(partTimeout)
	defer timeout.Stop()
	gone := w.gone()
	for _, l := range w.all() {
		if !l.isAttached() {
			continue
		}
		if l.rank == gone {
			w.dismiss(l)
			continue
		}
		select {
		case <-l.over:
		case <-l.left:
		case <-timeout.C:
			return
		}
	}
}

// dismiss parts from a rank that has been silent or lost. It may wake up one day,
// and then find the end of its world on a stream that was closed, not broken. If it
// was only slow, it says that it knows of the end, before the connection is severed
// and takes with it what it has not read.
func (w *World) dismiss(l *link) {
	timeout := time.NewTimer(dismissTimeout)
	defer timeout.Stop()
	select {
	case <-l.over:
	case <-timeout.C:
	}
	l.stream.Close()
}

// gone is the rank by whose silence or loss the world has ended: there is no use in
// waiting for what it says. It is -1 if the world has ended otherwise.
func (w *World) gone() int {
	var e *EndedError
	if errors.As(context.Cause(w.ctx), &e) && (errors.Is(e, ErrSilent) || errors.Is(e, ErrLost)) {
		return e.Rank
	}
	return -1
}

// missed ends the world, as an operation cannot go on without a rank that has left.
func (w *World) missed(rank int) error {
	w.fault(rank, ErrLeft)
	return context.Cause(w.ctx)
}

// checkPeer refuses ranks that cannot be sent to or received from.
func (w *World) checkPeer(rank int) error {
	switch {
	case rank < 0 || rank >= w.Size():
		return fmt.Errorf("mesh: rank %d is not in a world of %d", rank, w.Size())
	case rank == w.rank:
		return fmt.Errorf("mesh: rank %d cannot exchange messages with itself", rank)
	}
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	return nil
}

// hello is what our streams begin with.
func (w *World) hello() hello {
	return hello{Epoch: w.roster.Epoch, Digest: w.roster.Digest, From: uint32(w.rank)}
}
