package mux

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

const (
	// MaxStripes bounds the secured connections of one Conn.
	MaxStripes = 16
	// greeting bounds the wait for a dialler's hello.
	greeting = 10 * time.Second
	// helloOK and helloUnknown are the answers to a hello, after the magic.
	helloOK      = 0
	helloUnknown = 1
	answerSize   = len(magic) + 1
)

// ErrUnknown is a stripe that names no connection of its peer's.
var ErrUnknown = errors.New("mux: no such connection to join")

// A Muxer makes Conns. It knows those that stripes may join.
type Muxer struct {
	mu    sync.Mutex
	known map[token]*Conn
}

// New makes a muxer, for one transport.
func New() *Muxer { return &Muxer{known: make(map[token]*Conn)} }

var _ network.Multiplexer = (*Muxer)(nil)

// stripes is what ties secured connections together.
type stripes struct {
	inbox   *inbox        // shared by all
	primary *Conn         // of a stripe: what it has joined
	ready   chan struct{} // closed when the peer has answered the hello

	tied    sync.Mutex
	list    []*Conn // of a primary: those that have joined
	closers []io.Closer
	closing bool
	turnOf  int // the stripe of the stream after the last
}

// NewConn starts the muxer's end of a secured connection that is on a Wire.
func (m *Muxer) NewConn(sec net.Conn, server bool, scope network.PeerScope) (network.MuxedConn, error) {
	wire := wireOf(sec)
	if wire == nil {
		return nil, fmt.Errorf("mux: %T is not on a wire", sec)
	}
	c := &Conn{
		sec: sec, wire: wire, nextID: 1, streams: make(map[uint32]*Stream), span: &network.NullScope{},
		turn: make(chan struct{}, 1), open: make(chan struct{}, maxStreams), due: make(chan struct{}, 1), done: make(chan struct{}),
		stripes: stripes{inbox: newInbox(), ready: make(chan struct{})},
	}
	c.turn <- struct{}{} // nothing goes out before the hellos
	err := m.greet(c, server)
	if err == nil && scope != nil {
		var span network.ResourceScopeSpan
		if span, err = scope.BeginSpan(); err == nil {
			c.span = span
		}
	}
	if err != nil {
		err = fmt.Errorf("mux: %w", err)
		c.fail(err)
		return nil, err
	}
	c.give()
	c.start()
	return c, nil
}

// greet exchanges hellos, as far as that needs no waiting for an answer.
func (m *Muxer) greet(c *Conn, server bool) error {
	c.wire.hold()
	if server {
		return m.admit(c)
	}
	if c.primary = c.wire.primary; c.primary != nil {
		c.token, c.inbox = c.primary.token, c.primary.inbox
	} else if _, err := rand.Read(c.token[:]); err != nil {
		return fmt.Errorf("token: %w", err)
	}
	return c.say(hello{c.primary != nil, c.token}.append(nil))
}

// admit reads a dialler's hello and answers it.
func (m *Muxer) admit(c *Conn) error {
	c.nextID = 2
	if err := c.sec.SetReadDeadline(time.Now().Add(greeting)); err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	p := make([]byte, helloSize)
	if _, err := io.ReadFull(c.sec, p); err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	if err := c.sec.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	h, err := parseHello(p)
	if err != nil {
		return err
	}
	c.token = h.token
	if h.join {
		c.primary = m.find(h.token, remotePeer(c.sec))
		if c.primary == nil || !c.primary.join(c) { // it ended, or has enough
			return errors.Join(ErrUnknown, c.say(append([]byte(magic), helloUnknown)))
		}
		c.inbox = c.primary.inbox
	} else if !m.bind(c) {
		return errors.New("a hello with the token of another connection")
	}
	close(c.ready)
	return c.say(append([]byte(magic), helloOK))
}

// greeted reads the answer to a dialler's hello.
func (c *Conn) greeted() error {
	if isClosed(c.ready) { // we are the ones who answered
		return nil
	}
	p := make([]byte, answerSize)
	if _, err := io.ReadFull(c.sec, p); err != nil {
		return err
	}
	switch {
	case string(p[:len(magic)]) != magic:
		return fmt.Errorf("mux: the answer to a hello begins with %q", p[:len(magic)])
	case p[len(magic)] != helloOK:
		return ErrUnknown
	}
	close(c.ready)
	return nil
}

// say sends a few bytes before there is anyone to send others.
func (c *Conn) say(p []byte) error {
	if _, err := c.sec.Write(p); err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	c.limited = time.Now().Add(greeting)
	if err := c.wire.Conn.SetWriteDeadline(c.limited); err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	if err := c.wire.flush(); err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	return nil
}

// bind makes a connection known to stripes to come.
func (m *Muxer) bind(c *Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known[c.token] != nil {
		return false
	}
	m.known[c.token] = c
	c.bound = func(c *Conn) {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.known, c.token)
	}
	return true
}

// find is the connection that a token names, if it is with the same peer.
func (m *Muxer) find(t token, p peer.ID) *Conn {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.known[t]
	if c == nil || p == "" || remotePeer(c.sec) != p {
		return nil
	}
	return c
}

// remotePeer is the peer that the security layer has proved.
func remotePeer(c net.Conn) peer.ID {
	if s, ok := c.(network.ConnSecurity); ok {
		return s.RemotePeer()
	}
	return ""
}
