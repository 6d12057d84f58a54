package simlink

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	"github.com/quic-go/quic-go"
	"go.uber.org/fx"

	"peermesh/node"
)

const (
	// udpHeader is what a datagram weighs beside its payload, in bytes: IP and UDP.
	udpHeader = 28
	// maxUnread bounds the datagrams that wait at a socket.
	maxUnread = 4096
)

// QUICConfig is that of a node on this host that speaks libp2p's QUIC over
// datagrams: full encryption, congestion control and all. Datagrams are lost by
// Link.Loss, by a full uplink, a cut, and at a frozen host, and may overtake each
// other by jitter. Its run is not the same for the same seed, for QUIC draws
// numbers of its own.
func (h *Host) QUICConfig() node.Config {
	addr := h.udpAddr()
	open := func(string, *net.UDPAddr) (net.PacketConn, error) { return h.listenPacket() }
	reuse := func(life fx.Lifecycle, reset quic.StatelessResetKey, token quic.TokenGeneratorKey, o ...quicreuse.Option) (*quicreuse.ConnManager, error) {
		m, err := quicreuse.NewConnManager(reset, token, o...)
		if err == nil {
			life.Append(fx.StopHook(m.Close))
		}
		return m, err
	}
	return node.Config{
		Key: h.key, Listen: []string{"/ip4/" + addr.IP.String() + "/udp/4001/quic-v1"}, Transports: []string{node.QUIC},
		Options: []libp2p.Option{libp2p.QUICReuse(reuse, quicreuse.OverrideListenUDP(open),
			quicreuse.OverrideSourceIPSelector(func() (quicreuse.SourceIPSelector, error) { return source{addr.IP}, nil }))},
	}
}

// source is where a host's datagrams come from, whoever they are for.
type source struct{ ip net.IP }

func (s source) PreferredSourceIPForDestination(*net.UDPAddr) (net.IP, error) { return s.ip, nil }

func (h *Host) udpAddr() *net.UDPAddr {
	return &net.UDPAddr{IP: net.IPv4(10, byte(h.index>>8), byte(h.index), 1), Port: port}
}

// A socket takes and sends a host's datagrams.
type socket struct {
	host *Host
	life int

	// Guarded by the network's lock.
	closed   bool
	in       []datagram
	readable sync.Cond
	readBy   deadline
}

type datagram struct {
	from *Host
	p    []byte
}

var _ net.PacketConn = (*socket)(nil)

func (h *Host) listenPacket() (*socket, error) {
	n := h.net
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
		return nil, errNetworkClosed
	case h.dead:
		return nil, ErrKilled
	case h.socket != nil:
		return nil, &net.OpError{Op: "listen", Net: "udp", Addr: h.udpAddr(), Err: syscall.EADDRINUSE}
	}
	h.socket = &socket{host: h, life: h.life, readable: sync.Cond{L: &n.mu}}
	return h.socket, nil
}

// WriteTo sends one datagram, and does not say what became of it.
func (s *socket) WriteTo(p []byte, to net.Addr) (int, error) {
	n := s.host.net
	host := -1
	if a, ok := to.(*net.UDPAddr); ok && a.Port == port {
		host = number(a.IP)
	}
	if host < 0 {
		return 0, &net.OpError{Op: "write", Net: "udp", Addr: to, Err: syscall.EHOSTUNREACH}
	}
	other := n.Host(host)
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.closed {
		return 0, net.ErrClosed
	}
	d := datagram{s.host, append([]byte(nil), p...)}
	n.post(s.host, other, &packet{kind: "datagram", size: len(p), land: func() { other.datagram(d) }})
	return len(p), nil
}

// transmitDatagram is transmit for what may be lost. The lock is held.
func (n *Network) transmitDatagram(from, to *Host, p *packet) {
	w := n.way(from, to)
	now, size := n.now(), p.size+udpHeader
	p.way = w
	w.datagrams++
	delay, lost := w.fate(n.config.Seed, w.datagrams)
	if from.full(now) {
		return
	}
	first, last := from.up.pass(now, now, size)
	first, last = w.pipe.pass(first, last, size)
	if lost {
		return
	}
	n.at(last+delay, func() {
		if !w.cut && !to.frozen {
			p.first = first + delay
			n.down(p)
		}
	})
}

// datagram lands. The lock is held.
func (h *Host) datagram(d datagram) {
	if s := h.socket; s != nil && len(s.in) < maxUnread {
		s.in = append(s.in, d)
		s.readable.Signal()
	}
}

// ReadFrom waits for the next datagram.
func (s *socket) ReadFrom(p []byte) (int, net.Addr, error) {
	s.host.net.mu.Lock()
	defer s.host.net.mu.Unlock()
	for len(s.in) == 0 && !s.closed && !s.readBy.passed() {
		s.readable.Wait()
	}
	switch {
	case s.closed:
		return 0, nil, net.ErrClosed
	case s.readBy.passed():
		return 0, nil, os.ErrDeadlineExceeded
	}
	d := s.in[0]
	s.in = s.in[1:]
	return copy(p, d.p), d.from.udpAddr(), nil
}

// Close frees the address.
func (s *socket) Close() error {
	s.host.net.mu.Lock()
	defer s.host.net.mu.Unlock()
	s.shut()
	return nil
}

// shut is Close with the lock held.
func (s *socket) shut() {
	s.closed, s.in = true, nil
	s.readable.Broadcast()
	if s.host.socket == s {
		s.host.socket = nil
	}
}

// LocalAddr is the host's.
func (s *socket) LocalAddr() net.Addr { return s.host.udpAddr() }

// SetDeadline bounds reads; writes do not wait.
func (s *socket) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }

// SetReadDeadline bounds reads, also one that waits already.
func (s *socket) SetReadDeadline(t time.Time) error {
	s.host.net.mu.Lock()
	defer s.host.net.mu.Unlock()
	s.readBy.set(t, &s.readable)
	return nil
}

// SetWriteDeadline has nothing to bound.
func (s *socket) SetWriteDeadline(time.Time) error { return nil }

// SetReadBuffer and SetWriteBuffer are asked for by QUIC; maxUnread and Port.Queue
// say what there is.
func (s *socket) SetReadBuffer(int) error { return nil }

// SetWriteBuffer is like SetReadBuffer.
func (s *socket) SetWriteBuffer(int) error { return nil }
