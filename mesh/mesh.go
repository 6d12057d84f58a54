package mesh

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	golog "github.com/ipfs/go-log/v2"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"peermesh/node"
)

var log = golog.Logger("mesh")

const (
	// stepEvery is how often the loop looks around without being woken.
	stepEvery = 100 * time.Millisecond
	// reportEvery is how often a peer without a world says why.
	reportEvery = 3 * time.Second
	// refusalEvery is how often at most a refusal is logged.
	refusalEvery = time.Second
)

// A Mesh is one peer's part in finding the others and agreeing on worlds.
type Mesh struct {
	node   *node.Node
	config Config
	first  []peer.AddrInfo
	since  time.Time
	gossip *gossip
	stops  []func() // of the stream handlers

	ctx    context.Context
	cancel context.CancelCauseFunc
	wake   chan struct{}
	wg     sync.WaitGroup
	once   sync.Once
	err    error // of the one Close

	learning sync.Mutex // held while announcements are checked, before mu

	mu       sync.Mutex // guards the rest
	self     *announcement
	view     view
	metAny   bool      // other peer, ever
	spread   time.Time // when to renew and publish our announcement
	contacts map[peer.ID]*contact
	fatal    error         // refused or closed: nothing more will form
	changed  chan struct{} // closed, and replaced, when promise, current or fatal change

	epoch     uint64 // the last that is known of
	base      digest // of its roster
	promise   *proposal
	proposing bool
	notBefore time.Time // of the next proposal
	declined  string    // why the last one failed

	current   *World
	delivered uint64 // the last epoch that World returned
	waiting   int    // callers of World
	report    time.Time
	refusal   time.Time
	unlogged  int // refusals since the last that was logged
	held      int // streams that wait for a commit
}

// Join makes the node a peer of a mesh, and begins to look for the others. A
// node is in one mesh at a time. ctx bounds Join itself; the mesh lasts until
// Leave or Close.
func Join(ctx context.Context, n *node.Node, c Config) (*Mesh, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("mesh: not joined: %w", context.Cause(ctx))
	}
	c, first, err := c.plan(n.ID())
	if err != nil {
		return nil, err
	}
	m := &Mesh{
		node: n, config: c, first: first, since: time.Now(),
		wake: make(chan struct{}, 1), changed: make(chan struct{}),
		view: make(view), contacts: make(map[peer.ID]*contact),
	}
	m.ctx, m.cancel = context.WithCancelCause(context.Background())
	for _, f := range first {
		m.contact(f.ID)
	}
	m.report = m.since.Add(reportEvery)
	m.spread = m.since.Add(announceEvery)
	if err := m.announce(m.since); err != nil {
		return nil, err
	}
	if err := m.serve(); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	m.wg.Go(m.loop)
	return m, nil
}

// serve takes the mesh's protocols, and joins the gossip.
func (m *Mesh) serve() error {
	for _, h := range []struct {
		id    protocol.ID
		serve func(*node.Stream)
	}{
		{meetProtocol, m.serveMeet},
		{formProtocol, m.serveForm},
		{controlProtocol, m.serveControl},
		{laneProtocol, m.serveLane},
	} {
		stop, err := m.node.Handle(m.ctx, h.id, h.serve)
		if err != nil {
			return fmt.Errorf("mesh: %w", err)
		}
		m.stops = append(m.stops, stop)
	}
	g, err := startGossip(m.node, m.config.Name, m.overheard)
	m.gossip = g
	return err
}

// overheard takes in an announcement from the gossip and reports whether it
// should spread.
func (m *Mesh) overheard(raw []byte) bool {
	a, err := m.open(raw)
	if err != nil || !m.ours(a) {
		return false
	}
	m.learn(a)
	return true
}

// loop is where everything begins that the mesh does unasked.
func (m *Mesh) loop() {
	tick := time.NewTicker(stepEvery)
	defer tick.Stop()
	for {
		m.step(time.Now())
		select {
		case <-m.ctx.Done():
			return
		case <-m.wake:
		case <-tick.C:
		}
	}
}

// poke wakes the loop.
func (m *Mesh) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// step does what is due.
func (m *Mesh) step(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.forming() {
		m.report = now.Add(reportEvery)
		return
	}
	if now.After(m.spread) {
		m.publish(now)
	}
	m.view.expire(now)
	for _, who := range m.due(now) {
		m.wg.Go(func() { m.meet(who) })
	}
	d := decide(m.situation(), now)
	if d.Action == propose && !m.proposing && now.After(m.notBefore) {
		m.begin(d.Members)
	}
	if now.After(m.report) {
		m.report = now.Add(reportEvery)
		log.Infof("mesh %q: %s", m.config.Name, d.Reason())
	}
}

// forming reports whether a world is wanted: the first from the start, a later
// one when somebody asks for it. The lock is held.
func (m *Mesh) forming() bool {
	if m.fatal != nil {
		return false
	}
	if m.current == nil {
		return true
	}
	return m.waiting > 0 && m.current.finished()
}

// publish renews our announcement and offers it to everyone. The lock is held.
func (m *Mesh) publish(now time.Time) {
	m.spread = now.Add(announceEvery)
	if err := m.announce(now); err != nil {
		log.Warnw("cannot renew the announcement", "err", err)
	}
	raw := m.self.raw
	m.wg.Go(func() { m.gossip.publish(m.ctx, raw) })
}

// announce renews our own announcement. The lock is held, or not needed yet.
func (m *Mesh) announce(now time.Time) error {
	a := &announcement{
		ID: m.node.ID(), Version: protocolVersion, Mesh: m.config.Name, World: m.config.World,
		Since: m.since, Expires: now.Add(lifetime), Addrs: m.node.Host().Addrs(),
	}
	if err := a.seal(m.node.Host().Peerstore().PrivKey(a.ID)); err != nil {
		return err
	}
	// What others compare is what they decode: the wire's precision.
	a, err := openAnnouncement(a.raw)
	if err != nil {
		return err
	}
	m.self = a
	m.view.add(a)
	return nil
}

// commit makes a proposal that all have acknowledged the current world. It
// fails if the promise was not kept up, as when the mesh is closing, or if others
// are a later epoch ahead.
func (m *Mesh) commit(p *proposal) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.promise != p || m.fatal != nil || p.roster.Epoch <= m.epoch {
		return false
	}
	m.promise = nil
	m.declined = ""
	m.epoch, m.base = p.roster.Epoch, p.roster.Digest
	w := newWorld(m.node, m.config, p, m.self.ID)
	m.current = w
	m.wg.Go(func() {
		w.run()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.announceChange()
		m.poke()
	})
	m.announceChange()
	log.Infof("mesh %q: world %d: this peer is rank %d of %d", m.config.Name, m.epoch, w.rank, w.Size())
	return true
}

// announceChange wakes those who wait for the state to change. The lock is held.
func (m *Mesh) announceChange() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// refused ends our attempt to join.
func (m *Mesh) refused(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.forming() {
		m.fatal = err
		m.announceChange()
	}
}
