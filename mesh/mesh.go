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
	// settleTime is how long the next world waits for members of the last one that
	// live, but have not asked for it.
	settleTime = 2 * time.Second
	// stepEvery is how often the loop looks around without being woken.
	stepEvery = 100 * time.Millisecond
	// restEach is the pause between two steps of a large mesh, for each peer that a
	// world wants.
	restEach = 20 * time.Microsecond
	// reportEvery is how often a peer without a world says why.
	reportEvery = 3 * time.Second
	// refusalEvery is how often at most a refusal is logged.
	refusalEvery = time.Second
)

// A Mesh is one peer's part in finding the others and agreeing on worlds.
type Mesh struct {
	node   *node.Node
	config Config
	first  []peer.AddrInfo // bootstrap peers; with finders mu guards it
	since  time.Time
	gossip *gossip
	stops  []func() // of the stream handlers

	ctx    context.Context
	cancel context.CancelCauseFunc
	wake   chan struct{}
	wg     sync.WaitGroup
	once   sync.Once
	err    error // of the one Close

	pace     pace       // of meetings
	learning sync.Mutex // held while announcements are checked, before mu

	mu       sync.Mutex // guards the rest
	self     *announcement
	view     view
	order    order     // of the view; see viewChanged
	metAny   bool      // other peer, ever
	spread   time.Time // when to renew and publish our announcement
	contacts map[peer.ID]*contact
	fatal    error         // refused or closed: nothing more will form
	changed  chan struct{} // closed, and replaced, when promise, current or fatal change

	// former are the members of the last world, which are looked for even if we hear
	// nothing of them, and kept their announcements as they stand in the state file.
	former map[peer.ID]*announcement
	kept   [][]byte

	memory    *memory // what must not be forgotten
	heard     uint64  // the highest epoch that others said they have promised
	promise   *proposal
	promiser  peer.ID // who proposed it
	proposing bool
	attempts  int                   // since the last world that stood
	notBefore time.Time             // of the next proposal
	declined  string                // why the last one failed
	awaits    peer.ID               // who should propose
	stalled   time.Time             // since when
	settled   time.Time             // until when late members of the last world are waited for
	twins     map[peer.ID]time.Time // when members of the world were met as someone newer

	sought    map[string]string // how each finder gets on, until it has found somebody
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
	finders, err := c.finders()
	if err != nil {
		return nil, err
	}
	m := &Mesh{
		node: n, config: c, first: first, since: c.Clock(),
		wake: make(chan struct{}, 1), changed: make(chan struct{}),
		view: make(view), contacts: make(map[peer.ID]*contact),
		former: make(map[peer.ID]*announcement), twins: make(map[peer.ID]time.Time), memory: new(memory),
		sought: make(map[string]string),
	}
	if err := m.recall(); err != nil {
		return nil, err
	}
	m.pace.size = c.World
	m.ctx, m.cancel = context.WithCancelCause(context.Background())
	for _, f := range first {
		m.contact(f.ID)
	}
	now := time.Now()
	m.report = now.Add(reportEvery)
	m.spread = now.Add(announceEvery)
	if err := m.announce(); err != nil {
		return nil, err
	}
	if err := m.serve(); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	m.wg.Go(m.loop)
	for _, f := range finders {
		m.wg.Go(func() { m.seek(f) })
	}
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
		{burstProtocol, m.serveBurst},
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
	a, err := openAnnouncement(raw)
	if err != nil || !m.ours(a) {
		return false
	}
	m.learn(a)
	return true
}

// loop is where everything begins that the mesh does unasked.
func (m *Mesh) loop() {
	tick := time.NewTicker(crowd(stepEvery, m.config.World))
	defer tick.Stop()
	for {
		m.step(time.Now())
		m.rest()
		select {
		case <-m.ctx.Done():
			return
		case <-m.wake:
		case <-tick.C:
		}
	}
}

// rest is a pause between two steps of a large mesh, for what has come meanwhile to be
// looked at together: a step looks at everyone that is known.
func (m *Mesh) rest() {
	if m.config.World <= maxFull {
		return
	}
	timer := time.NewTimer(time.Duration(m.config.World) * restEach)
	defer timer.Stop()
	select {
	case <-m.ctx.Done():
	case <-timer.C:
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
	// A peer in a world answers those who want to be let in, for as long as that lasts.
	if m.fatal == nil && m.self.Expires.Sub(m.config.Clock()) < renewAt(m.self.ID) {
		m.publish(now)
	}
	if !m.forming() {
		m.report = now.Add(reportEvery)
		if w := m.current; w != nil && w.stands() && w.Size() < m.config.World {
			m.meetDue(now) // for those who want to be let in
		}
		return
	}
	if now.After(m.spread) {
		m.publish(now)
	}
	if m.view.expire(m.config.Clock()) {
		m.viewChanged()
	}
	m.meetDue(now)
	d := decide(m.situation(), now)
	if d.Awaits != m.awaits {
		m.awaits, m.stalled = d.Awaits, now
	}
	if d.Action == propose && !m.proposing && now.After(m.notBefore) {
		m.begin(d.Members)
	}
	if now.After(m.report) {
		m.report = now.Add(reportEvery)
		log.Infof("mesh %q: %s", m.config.Name, d.Reason())
	}
}

// meetDue meets those whose turn it is. The lock is held.
func (m *Mesh) meetDue(now time.Time) {
	for _, who := range m.due(now) {
		m.wg.Go(func() { m.meet(who) })
	}
}

// forming reports whether a world is wanted: the first from the start, a later
// one when somebody asks for it. The lock is held.
func (m *Mesh) forming() bool {
	if m.fatal != nil {
		return false
	}
	w := m.current
	return w == nil || w.finished() && (m.waiting > 0 || !isClosed(w.linked))
}

// publish renews our announcement and offers it to everyone. The lock is held.
func (m *Mesh) publish(now time.Time) {
	m.spread = now.Add(m.unhurried(announceEvery))
	if err := m.announce(); err != nil {
		log.Warnw("cannot renew the announcement", "err", err)
	}
	raw := m.self.raw
	m.wg.Go(func() { m.gossip.publish(m.ctx, raw) })
}

// renewAt is how long before it expires a peer in a world renews its announcement: not
// all at once, since all hear of it.
func renewAt(id peer.ID) time.Duration {
	return lifetime/2 - lifetime/4*time.Duration(id[len(id)-1])/256
}

// unhurried is a pause between two announcements to everyone, of a peer without a world:
// longer in a large mesh, where the hubs tell the same sooner and to fewer.
func (m *Mesh) unhurried(d time.Duration) time.Duration {
	if m.config.World <= maxFull {
		return d
	}
	return crowd(d, m.config.World)
}

// announce renews our own announcement. The lock is held, or not needed yet.
func (m *Mesh) announce() error {
	a := &announcement{
		ID: m.node.ID(), Version: protocolVersion, Mesh: m.config.Name, World: m.config.World,
		Since: m.since, Expires: m.config.Clock().Add(lifetime), Addrs: m.node.Host().Addrs(),
		Terms: m.config.Terms,
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
	m.viewChanged()
	return nil
}

// announceChange wakes those who wait for the state to change. The lock is held.
func (m *Mesh) announceChange() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// refused ends our attempt to join. A peer that has been in a world has joined, and is
// not ended by what another says.
func (m *Mesh) refused(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current == nil && m.forming() {
		m.fatal = err
		m.announceChange()
	}
}
