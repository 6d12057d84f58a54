package simlink

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/pnet"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// maxBacklog bounds the connections that wait for a listener's Accept.
const maxBacklog = 1024

// A Transport is how the node of a host reaches the others. It belongs to one life
// of the host: after Kill it does nothing more.
type Transport struct {
	host  *Host
	life  int
	limit network.ResourceManager
	gater connmgr.ConnectionGater // may be nil
	psk   pnet.PSK
}

var _ transport.Transport = (*Transport)(nil)

// newTransport is called by libp2p with what it has.
func (h *Host) newTransport(id peer.ID, limit network.ResourceManager, gater connmgr.ConnectionGater, psk pnet.PSK) (*Transport, error) {
	if id != h.id {
		return nil, fmt.Errorf("simlink: host %d is %s, not %s", h.index, h.id, id)
	}
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	return &Transport{host: h, life: h.life, limit: limit, gater: gater, psk: psk}, nil
}

// alive says why the transport does nothing, if so. The lock is held.
func (t *Transport) alive() error {
	switch {
	case t.host.net.closed:
		return errNetworkClosed
	case t.host.dead || t.life != t.host.life:
		return ErrKilled
	}
	return nil
}

// CanDial knows the addresses of simlink's own hosts.
func (t *Transport) CanDial(a multiaddr.Multiaddr) bool { return t.target(a) >= 0 }

// target is the number of the host with an address, or -1. It looks up no names.
func (t *Transport) target(a multiaddr.Multiaddr) int {
	if len(a) != 2 || a[0].Code() != multiaddr.P_IP4 || a[1].Code() != multiaddr.P_TCP || binary.BigEndian.Uint16(a[1].RawValue()) != port {
		return -1
	}
	return number(a[0].RawValue())
}

// number is that of the host with an IP address, or -1.
func number(addr net.IP) int {
	ip := addr.To4()
	if ip == nil || ip[0] != 10 || ip[3] != 1 {
		return -1
	}
	return int(ip[1])<<8 | int(ip[2])
}

// Protocols is TCP: addresses look as everyone expects them.
func (t *Transport) Protocols() []int { return []int{multiaddr.P_TCP} }

// Proxy is false.
func (t *Transport) Proxy() bool { return false }

func (t *Transport) String() string { return "simlink" }

// A dialing is one call of Dial until its answer has come.
type dialing struct {
	t      *Transport
	want   peer.ID
	answer chan error // has room for one
	conn   *conn
	gone   bool // the caller is
}

// Dial takes one round trip. A host that is cut off or frozen does not answer; one
// without listener refuses.
func (t *Transport) Dial(ctx context.Context, raddr multiaddr.Multiaddr, p peer.ID) (transport.CapableConn, error) {
	to := t.target(raddr)
	if to < 0 {
		return nil, fmt.Errorf("simlink: no host at %s: %w", raddr, syscall.EHOSTUNREACH)
	}
	scope, err := t.limit.OpenConnection(network.DirOutbound, true, raddr)
	if err != nil {
		return nil, err
	}
	if err := scope.SetPeer(p); err != nil {
		scope.Done()
		return nil, err
	}
	d := &dialing{t: t, want: p, answer: make(chan error, 1)}
	if err = t.knock(d, t.host.net.Host(to)); err == nil {
		err = d.wait(ctx)
	}
	if err != nil {
		scope.Done()
		return nil, err
	}
	if d.conn.take(t, scope); t.gater != nil && !t.gater.InterceptSecured(network.DirOutbound, p, d.conn) {
		return nil, errors.Join(fmt.Errorf("simlink: %s is not allowed", p), d.conn.CloseWithError(network.ConnGated))
	}
	return d.conn, nil
}

// knock sends the first packet.
func (t *Transport) knock(d *dialing, to *Host) error {
	n := t.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := t.alive(); err != nil {
		return err
	}
	w := n.way(t.host, to)
	w.conns++
	pair := &pair{dialer: t.host.index, number: w.conns}
	n.post(t.host, to, &packet{kind: "dial", land: func() { to.answer(d, pair) }})
	return nil
}

// wait for the answer, at most as long as ctx.
func (d *dialing) wait(ctx context.Context) error {
	select {
	case err := <-d.answer:
		return err
	case <-ctx.Done():
	}
	n := d.t.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	d.gone = true
	if d.conn != nil { // it came at the last moment
		d.conn.shut(0, errAbandoned)
	}
	return context.Cause(ctx)
}

var errAbandoned = errors.New("simlink: dial given up")

// answer is the other side's. The lock is held.
func (h *Host) answer(d *dialing, pair *pair) {
	n, from := h.net, d.t.host
	no := func(err error) {
		n.post(h, from, &packet{kind: "refuse", land: func() { d.answer <- err }})
	}
	l := h.listener
	switch {
	case l == nil:
		no(fmt.Errorf("simlink: host %d: %w", h.index, syscall.ECONNREFUSED))
	case !bytes.Equal(d.t.psk, l.t.psk):
		no(errors.New("simlink: not of the same private network"))
	case d.want != h.id:
		no(fmt.Errorf("simlink: peer id mismatch: %w", sec.ErrPeerIDMismatch{Expected: d.want, Actual: h.id}))
	case len(l.backlog) >= maxBacklog:
		// As a full backlog does: nothing. The dialler's patience ends it.
	default:
		near, far := newConns(pair, from, h)
		l.backlog = append(l.backlog, far)
		l.ready.Signal()
		n.post(h, from, &packet{kind: "accept", land: func() {
			if d.t.alive() != nil || d.gone {
				near.shut(0, errAbandoned)
				return
			}
			d.conn = near
			d.answer <- nil
		}})
	}
}

// A listener accepts for one node.
type listener struct {
	t       *Transport
	ready   sync.Cond // on net.mu
	backlog []*conn
	closed  bool
}

// Listen takes the host's own address, once.
func (t *Transport) Listen(a multiaddr.Multiaddr) (transport.Listener, error) {
	n := t.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := t.alive(); err != nil {
		return nil, err
	}
	if !a.Equal(t.host.addr) {
		return nil, fmt.Errorf("simlink: cannot listen on %s: host %d is %s: %w", a, t.host.index, t.host.addr, syscall.EADDRNOTAVAIL)
	}
	if t.host.listener != nil {
		return nil, fmt.Errorf("simlink: cannot listen on %s: %w", a, syscall.EADDRINUSE)
	}
	l := &listener{t: t, ready: sync.Cond{L: &n.mu}}
	t.host.listener = l
	return l, nil
}

// Accept waits for the next connection that the node's limits and its gater let in.
func (l *listener) Accept() (transport.CapableConn, error) {
	for {
		c, err := l.next()
		if err != nil {
			return nil, err
		}
		if l.admit(c) {
			return c, nil
		}
	}
}

func (l *listener) next() (*conn, error) {
	n := l.t.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(l.backlog) == 0 && !l.closed {
		l.ready.Wait()
	}
	if l.closed {
		return nil, transport.ErrListenerClosed
	}
	c := l.backlog[0]
	l.backlog = l.backlog[1:]
	return c, nil
}

func (l *listener) admit(c *conn) bool {
	t := l.t
	scope, err := t.limit.OpenConnection(network.DirInbound, true, c.RemoteMultiaddr())
	if err == nil {
		if err = scope.SetPeer(c.RemotePeer()); err != nil {
			scope.Done()
		}
	}
	if err != nil {
		_ = c.CloseWithError(network.ConnResourceLimitExceeded) // the end of it either way
		return false
	}
	if c.take(t, scope); t.gater != nil && (!t.gater.InterceptAccept(c) || !t.gater.InterceptSecured(network.DirInbound, c.RemotePeer(), c)) {
		_ = c.CloseWithError(network.ConnGated) // likewise
		return false
	}
	return true
}

// Close refuses all who are not accepted yet.
func (l *listener) Close() error {
	n := l.t.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	l.shut()
	return nil
}

// shut is Close with the lock held.
func (l *listener) shut() {
	if l.closed {
		return
	}
	l.closed = true
	if l.t.host.listener == l {
		l.t.host.listener = nil
	}
	for _, c := range l.backlog {
		c.shut(0, transport.ErrListenerClosed)
	}
	l.backlog = nil
	l.ready.Broadcast()
}

// Addr is the host's address.
func (l *listener) Addr() net.Addr {
	a, err := manet.ToNetAddr(l.t.host.addr)
	if err != nil {
		panic("simlink: address of a host: " + err.Error())
	}
	return a
}

// Multiaddr is the host's address.
func (l *listener) Multiaddr() multiaddr.Multiaddr { return l.t.host.addr }
