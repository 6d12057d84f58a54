package simlink

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/pnet"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/multiformats/go-multiaddr"
)

const dialLatency = 10 * time.Millisecond

// limits refuse what a test says, and count what is open.
type limits struct {
	network.NullResourceManager
	open, peer error // of OpenConnection and SetPeer
	held       atomic.Int32
}

func (m *limits) OpenConnection(network.Direction, bool, multiaddr.Multiaddr) (network.ConnManagementScope, error) {
	if m.open != nil {
		return nil, m.open
	}
	m.held.Add(1)
	return &connScope{of: m}, nil
}

type connScope struct {
	network.NullScope
	of *limits
}

func (s *connScope) SetPeer(peer.ID) error { return s.of.peer }
func (s *connScope) Done()                 { s.of.held.Add(-1) }

// A gate lets connections pass at neither, either or both of its two points.
type gate struct {
	connmgr.ConnectionGater // has no others that are asked
	accept, secured         bool
}

func (g gate) InterceptAccept(network.ConnMultiaddrs) bool { return g.accept }
func (g gate) InterceptSecured(network.Direction, peer.ID, network.ConnMultiaddrs) bool {
	return g.secured
}
func (g gate) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }

// An end is a host's transport, and what it may do.
type end struct {
	limits limits
	gater  connmgr.ConnectionGater
	psk    pnet.PSK
}

func (l *lab) transport(host int, e *end) *Transport {
	l.Helper()
	h := l.net.Host(host)
	t, err := h.newTransport(h.id, &e.limits, e.gater, e.psk)
	if err != nil {
		l.Fatal(err)
	}
	return t
}

func (l *lab) listen(host int, e *end) transport.Listener {
	l.Helper()
	lis, err := l.transport(host, e).Listen(l.net.Host(host).Multiaddr())
	if err != nil {
		l.Fatal(err)
	}
	return lis
}

// dial has the first host dial the second, for at most a second.
func (l *lab) dial(e *end) (transport.CapableConn, time.Duration, error) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), time.Second)
	defer cancel()
	start := l.net.Since()
	c, err := l.transport(0, e).Dial(ctx, l.net.Host(1).Multiaddr(), l.net.Host(1).ID())
	return c, l.net.Since() - start, err
}

// about fails unless a round trip took what it must, or little more.
func (l *lab) about(what string, took, want time.Duration) {
	l.Helper()
	if took < want || took > want+2*settling {
		l.Errorf("%s took %v, want %v", what, took, want)
	}
}

// Both ends of a connection know who the other is, and what it takes is given back once
// it is closed.
func TestDial(t *testing.T) {
	inLab(t, "", Config{Link: Link{Latency: dialLatency}}, func(l *lab) {
		var from, to end
		lis := l.listen(1, &to)
		near, took, err := l.dial(&from)
		if err != nil {
			l.Fatal(err)
		}
		l.about("to dial", took, 2*dialLatency)
		far, err := lis.Accept()
		if err != nil {
			l.Fatal(err)
		}
		for i, c := range []transport.CapableConn{near, far} {
			self, other := l.net.Host(i), l.net.Host(1-i)
			if c.LocalPeer() != self.ID() || c.RemotePeer() != other.ID() || !c.RemotePublicKey().Equals(other.Key().GetPublic()) {
				l.Errorf("end %d is between %s and %s", i, c.LocalPeer(), c.RemotePeer())
			}
			if !c.LocalMultiaddr().Equal(self.Multiaddr()) || !c.RemoteMultiaddr().Equal(other.Multiaddr()) || c.As(new(int)) {
				l.Errorf("end %d is between %s and %s", i, c.LocalMultiaddr(), c.RemoteMultiaddr())
			}
			if s := c.ConnState(); s.Transport != "simlink" || c.Scope() == nil || c.Transport().Proxy() {
				l.Errorf("end %d is %+v", i, s)
			}
		}
		if from.limits.held.Load() != 1 || to.limits.held.Load() != 1 {
			l.Errorf("one connection is counted as %d and %d", from.limits.held.Load(), to.limits.held.Load())
		}
		if err := errors.Join(near.Close(), far.Close(), near.Close(), lis.Close()); err != nil {
			l.Error(err)
		}
		l.after(time.Second)
		if from.limits.held.Load() != 0 || to.limits.held.Load() != 0 {
			l.Errorf("after the end %d and %d are counted", from.limits.held.Load(), to.limits.held.Load())
		}
	})
}

// A dial that is refused says why, a round trip later, and leaves nothing behind.
func TestDialRefused(t *testing.T) {
	var mismatch sec.ErrPeerIDMismatch
	key := pnet.PSK(make([]byte, 32))
	for name, c := range map[string]*struct {
		from, to end
		prepare  func(l *lab, lis transport.Listener)
		want     func(err error) bool
	}{
		"closed": {
			prepare: func(l *lab, lis transport.Listener) { lis.Close() },
			want:    func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) },
		},
		"killed": {
			prepare: func(l *lab, lis transport.Listener) { l.net.Kill(1) },
			want:    func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) },
		},
		"other identity": {
			prepare: func(l *lab, lis transport.Listener) { l.net.Host(1).id = l.net.Host(2).id },
			want:    func(err error) bool { return errors.As(err, &mismatch) },
		},
		"private": {to: end{psk: key}, want: func(err error) bool { return strings.Contains(err.Error(), "private network") }},
		"public":  {from: end{psk: key}, want: func(err error) bool { return strings.Contains(err.Error(), "private network") }},
	} {
		inLab(t, name, Config{Hosts: 3, Link: Link{Latency: dialLatency}}, func(l *lab) {
			lis, want := l.listen(1, &c.to), l.net.Host(1).ID()
			if c.prepare != nil {
				c.prepare(l, lis)
			}
			start := l.net.Since()
			_, err := l.transport(0, &c.from).Dial(l.Context(), l.net.Host(1).Multiaddr(), want)
			if err == nil || !c.want(err) {
				l.Errorf("refused with %v", err)
			}
			l.about("to be refused", l.net.Since()-start, 2*dialLatency)
			if c.from.limits.held.Load() != 0 || c.to.limits.held.Load() != 0 {
				l.Errorf("%d and %d are counted", c.from.limits.held.Load(), c.to.limits.held.Load())
			}
			lis.Close()
		})
	}
}

// Who does not answer is waited for as long as the dialler wants. What the other side
// has accepted in the end is broken once it hears that nobody wants it any more.
func TestDialWithoutAnswer(t *testing.T) {
	for name, c := range map[string]struct{ fault, heal func(n *Network) }{
		"frozen":  {func(n *Network) { n.Freeze(1) }, func(n *Network) { n.Thaw(1) }},
		"cut off": {func(n *Network) { n.Cut(0, 1) }, func(n *Network) { n.Heal(0, 1) }},
	} {
		inLab(t, name, Config{Link: Link{Latency: dialLatency}}, func(l *lab) {
			var from, to end
			lis := l.listen(1, &to)
			c.fault(l.net)
			_, took, err := l.dial(&from)
			if !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
				l.Errorf("after %v: %v", took, err)
			}
			c.heal(l.net)
			far, err := lis.Accept()
			if err != nil {
				l.Fatal(err)
			}
			l.after(time.Second)
			if !far.IsClosed() || from.limits.held.Load() != 0 || to.limits.held.Load() != 0 {
				l.Errorf("still there: closed %v, %d and %d are counted", far.IsClosed(), from.limits.held.Load(), to.limits.held.Load())
			}
			lis.Close()
		})
	}
}

// A connection that is there at the very moment at which its dialler gives up is closed.
func TestDialGivenUpAtTheLastMoment(t *testing.T) {
	inLab(t, "", Config{}, func(l *lab) {
		ctx, cancel := context.WithCancel(l.Context())
		cancel()
		d := &dialing{t: l.transport(0, new(end)), answer: make(chan error), conn: l.near.conn}
		if err := d.wait(ctx); !errors.Is(err, context.Canceled) || !d.conn.IsClosed() {
			l.Errorf("%v, closed %v", err, d.conn.IsClosed())
		}
	})
}

// Either side's gater closes a connection, and the other side hears that it was that.
func TestGaters(t *testing.T) {
	for name, c := range map[string]*struct {
		from, to end
		dials    bool // as far as the dialler can tell at first
	}{
		"dialler":            {end{gater: gate{}}, end{}, false},
		"listener's accept":  {end{}, end{gater: gate{secured: true}}, true},
		"listener's secured": {end{}, end{gater: gate{accept: true}}, true},
	} {
		inLab(t, name, Config{}, func(l *lab) {
			lis := l.listen(1, &c.to)
			accepted := make(chan transport.CapableConn, 1)
			go func() {
				far, _ := lis.Accept() // nil once it is closed
				accepted <- far
			}()
			near, _, err := l.dial(&c.from)
			if (err == nil) != c.dials {
				l.Fatal(err)
			}
			l.after(time.Second)
			broken := near
			if c.dials {
				lis.Close()
				if far := <-accepted; far != nil {
					l.Error("accepted in spite of the gater")
				}
			} else {
				broken = <-accepted
				lis.Close()
			}
			var e *network.ConnError
			if _, err := broken.AcceptStream(); !errors.As(err, &e) || !e.Remote || e.ErrorCode != network.ConnGated {
				l.Errorf("the other side hears %v", err)
			}
			if c.from.limits.held.Load() != 0 || c.to.limits.held.Load() != 0 {
				l.Errorf("%d and %d are counted", c.from.limits.held.Load(), c.to.limits.held.Load())
			}
		})
	}
}

// A dialler without room dials nobody, and a listener without room says so.
func TestConnectionLimits(t *testing.T) {
	full := errors.New("full")
	for name, c := range map[string]*struct{ from, to end }{
		"dialler":           {from: end{limits: limits{open: full}}},
		"dialler's peers":   {from: end{limits: limits{peer: full}}},
		"listener":          {to: end{limits: limits{open: full}}},
		"listener for this": {to: end{limits: limits{peer: full}}},
	} {
		inLab(t, name, Config{}, func(l *lab) {
			lis := l.listen(1, &c.to)
			done := make(chan struct{})
			go func() {
				defer close(done)
				if far, err := lis.Accept(); err == nil {
					l.Errorf("accepted from %s", far.RemotePeer())
				}
			}()
			near, _, err := l.dial(&c.from)
			if mine := c.from.limits.open != nil || c.from.limits.peer != nil; mine != errors.Is(err, full) {
				l.Errorf("dialled: %v", err)
			} else if !mine {
				var e *network.ConnError
				if _, err := near.AcceptStream(); !errors.As(err, &e) || !e.Remote || e.ErrorCode != network.ConnResourceLimitExceeded {
					l.Errorf("the dialler hears %v", err)
				}
			}
			lis.Close()
			<-done
			if c.from.limits.held.Load() != 0 || c.to.limits.held.Load() != 0 {
				l.Errorf("%d and %d are counted", c.from.limits.held.Load(), c.to.limits.held.Load())
			}
		})
	}
}
