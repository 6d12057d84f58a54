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

// A link is one control stream: how two ranks know of each other that they live,
// leave, or have seen the end.
type link struct {
	w    *World
	rank int
	id   peer.ID

	attached chan struct{} // closed when the stream is there
	urgent   chan []byte   // end, leave and goodbye: each once at most
	queue    chan []byte   // signals
	stirred  chan struct{} // there is news
	heard    atomic.Int64  // when, in nanoseconds since w.start
	pulse    pulse         // what its silence may last

	echo    chan time.Duration // round trips, for who has asked
	sounded chan struct{}      // closed when it is known how far the rank is
	reading *reading           // what is known then; nil: nothing

	left    chan struct{} // closed when it has said that it leaves
	goodbye chan struct{} // closed when it has seen that we leave
	drained chan struct{} // closed when it has left and all its lanes are here
	over    chan struct{} // closed when it knows of the end, or is gone

	mu      sync.Mutex // guards the rest, and the closing of the channels
	stream  *node.Stream
	opening bool // by us

	news   [][]byte // that is to be sent; w.mu guards this
	lanes  uint32   // that it had opened to us when it left, likewise
	opened uint32   // and those that have arrived
}

func newLink(w *World, rank int) *link {
	return &link{
		w: w, rank: rank, id: w.Peer(rank),
		attached: make(chan struct{}), stirred: make(chan struct{}, 1), urgent: make(chan []byte, 3), queue: make(chan []byte, maxQueued),
		echo: make(chan time.Duration, 1), sounded: make(chan struct{}),
		left: make(chan struct{}), goodbye: make(chan struct{}),
		drained: make(chan struct{}), over: make(chan struct{}),
	}
}

// to is the link to a rank, made when it is needed first: in a large world most never
// are. It is nil for our own rank.
func (w *World) to(rank int) *link {
	w.linking.Lock()
	defer w.linking.Unlock()
	l := w.links[rank]
	if l == nil && rank != w.rank {
		l = newLink(w, rank)
		if w.last != nil {
			l.urgent <- w.last
		}
		w.links[rank] = l
		if w.running {
			w.node.Protect(l.id, protection)
		}
	}
	return l
}

// protect keeps the connections that links use, or will while the world runs, from being
// trimmed, and lets them be when it does not any more.
func (w *World) protect(running bool) {
	guard := w.node.Unprotect
	if running {
		guard = w.node.Protect
	}
	w.linking.Lock()
	defer w.linking.Unlock()
	w.running = running
	for _, l := range w.links {
		if l != nil {
			guard(l.id, protection)
		}
	}
}

// has is the link to a rank, if there is one already; nil otherwise.
func (w *World) has(rank int) *link {
	w.linking.Lock()
	defer w.linking.Unlock()
	return w.links[rank]
}

// all lists the links that there are, by rank.
func (w *World) all() (links []*link) {
	w.linking.Lock()
	defer w.linking.Unlock()
	for _, l := range w.links {
		if l != nil {
			links = append(links, l)
		}
	}
	return links
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// mark closes one of the link's channels, once.
func (l *link) mark(c chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !isClosed(c) {
		close(c)
	}
}

func (l *link) isAttached() bool { return isClosed(l.attached) }

// open opens the control stream, unless that is done or under way: hello, and a
// hello in return. When both sides open at the same time, the lower rank's stream
// stands.
func (l *link) open(ctx context.Context) error {
	l.mu.Lock()
	busy := l.opening || l.stream != nil
	l.opening = true
	l.mu.Unlock()
	if busy {
		return nil
	}
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.opening = false
	}()
	w := l.w
	if err := w.node.Connect(ctx, peer.AddrInfo{ID: l.id, Addrs: w.members[l.rank].Addrs}); err != nil {
		return err
	}
	s, err := w.node.Open(ctx, l.id, controlProtocol)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { s.SetDeadline(time.Unix(1, 0)) })
	if _, err = s.Write(w.hello().append(nil)); err == nil {
		var h hello
		if h, err = readHello(s); err == nil && (h.Digest != w.roster.Digest || int(h.From) != l.rank) {
			err = fmt.Errorf("mesh: %s answers for another world: %w", l.id, node.ErrViolation)
		}
	}
	// The last member to link up ends ctx, and that must not hit a stream in use.
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		s.Reset(err)
		if errors.Is(err, node.ErrLimit) { // the other side's own stream is on its way, or here
			return nil
		}
		return err
	}
	l.attach(s)
	return nil
}

// need opens the control stream to a rank that is no neighbour, when there is
// something to say to it.
func (l *link) need() {
	if l.isAttached() {
		return
	}
	l.w.tasks.start(func() {
		ctx, cancel := l.w.within(l.w.pace.patient(linkTimeout))
		defer cancel()
		if err := l.open(ctx); err != nil && l.w.ctx.Err() == nil {
			l.w.fault(l.rank, fmt.Errorf("%w: %w", ErrAbsent, err))
		}
	})
}

// serveControl is the other side.
func (m *Mesh) serveControl(s *node.Stream) {
	w, l := m.admit(s)
	if l == nil {
		return
	}
	l.mu.Lock()
	mine := l.stream != nil || l.opening && w.rank < l.rank
	l.mu.Unlock()
	if mine {
		s.Reset(fmt.Errorf("mesh: second control stream: %w", node.ErrLimit))
		return
	}
	if _, err := s.Write(w.hello().append(nil)); err != nil {
		m.drop(s, err)
		return
	}
	l.attach(s)
}

// attach gives the link its stream, and brings it to life.
func (l *link) attach(s *node.Stream) {
	l.mu.Lock()
	second := l.stream != nil
	if !second {
		l.stream = s
	}
	l.mu.Unlock()
	if second {
		s.Reset(fmt.Errorf("mesh: second control stream: %w", node.ErrLimit))
		return
	}
	s.Bind(l.w.wires)
	s.SetDeadline(time.Time{})
	l.hear()
	if !l.w.tasks.start(l.read) || !l.w.tasks.start(l.write) {
		s.Reset(node.ErrClosed)
		return
	}
	l.mark(l.attached)
	l.stir()
	if err := l.w.arrived(int64(l.rank)); err != nil {
		log.Debugw("impossible rank", "err", err)
	}
}

// hear notes that the peer is alive.
func (l *link) hear() { l.heard.Store(int64(time.Since(l.w.start))) }
